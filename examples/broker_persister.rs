//! A persister service: a tokio server on a loopback socket that answers Kafka's persister calls
//! from a store.
//!
//! `cargo run --example broker_persister -- DIR [ADDRESS]` serves until it is killed;
//! `cargo run --example broker_persister -- --once` serves itself on a temporary store, shows every
//! call, also over a restart in the middle of a transaction, and ends.
//!
//! A frame is a length (4 bytes, big endian) and as much JSON: `{"call": "write", "group": ...}`.
//! A real broker has Kafka's own protocol here; what stands between the socket and
//! [`Persister`] is the same.

use std::error::Error;
use std::path::Path;

use serde_json::{Value, json};
use sharestate::kafka::{
    AcknowledgePartition, AcknowledgementBatch, DeletePartition, GroupRequest, InitializePartition,
    PartitionResult, Persister, ReadPartition, ReadRequest, ReadResult, SHARE_GROUP_STATE_TOPIC,
    SummaryPartition, SummaryResult, TopicData, TxnMarker, TxnMarkerTopic,
    TxnShareAcknowledgeRequest, WritePartition,
};
use sharestate::{DeliveryState, Options, ShareStore, StateBatch};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

type Failure = Box<dyn Error + Send + Sync>;

/// No request of a broker comes near this; nothing is allocated for a longer one.
const FRAME_MAX: u32 = 16 << 20;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--once"] => once(&runtime),
        [dir] => runtime.block_on(serve(open(dir.as_ref())?, "127.0.0.1:9876")),
        [dir, address] => runtime.block_on(serve(open(dir.as_ref())?, address)),
        _ => Err("usage: broker_persister DIR [ADDRESS] | --once".into()),
    }
}

/// Opening blocks on file work, so it happens outside the runtime.
fn open(dir: &Path) -> Result<Persister, Failure> {
    let store = ShareStore::open(dir, &Options::default())?;
    println!("opened {} in {:?}", dir.display(), store.recovery().elapsed);
    Ok(Persister::new(store))
}

async fn serve(persister: Persister, address: &str) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    println!("serving on {}", listener.local_addr()?);
    accept(listener, persister).await
}

/// Each connection has its own task; calls of all of them share the store's syncs.
async fn accept(listener: TcpListener, persister: Persister) -> Result<(), Failure> {
    loop {
        let (socket, peer) = listener.accept().await?;
        let persister = persister.clone();
        tokio::spawn(async move {
            if let Err(error) = converse(socket, &persister).await {
                eprintln!("{peer}: {error}");
            }
        });
    }
}

async fn converse(mut socket: TcpStream, persister: &Persister) -> Result<(), Failure> {
    while let Some(request) = receive(&mut socket).await? {
        let answer = match call(persister, &request).await {
            Ok(answer) => answer,
            Err(error) => json!({ "malformed": error.to_string() }),
        };
        send(&mut socket, &answer).await?;
    }
    Ok(())
}

async fn receive(socket: &mut TcpStream) -> Result<Option<Value>, Failure> {
    let length = match socket.read_u32().await {
        Ok(length) if length <= FRAME_MAX => length,
        Ok(length) => return Err(format!("a frame of {length} bytes is too long").into()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let mut frame = vec![0; length as usize];
    socket.read_exact(&mut frame).await?;
    Ok(Some(serde_json::from_slice(&frame)?))
}

async fn send(socket: &mut TcpStream, value: &Value) -> Result<(), Failure> {
    let frame = serde_json::to_vec(value)?;
    socket.write_u32(u32::try_from(frame.len())?).await?;
    socket.write_all(&frame).await?;
    Ok(())
}

async fn call(persister: &Persister, request: &Value) -> Result<Value, Failure> {
    Ok(match request["call"].as_str().ok_or("no call")? {
        "initialize" => done(&persister.initialize_state(group(request, initialize)?).await),
        "write" => done(&persister.write_state(group(request, write)?).await),
        "delete" => {
            let delete = |p: &Value| Ok(DeletePartition { partition: int(p, "partition")? });
            done(&persister.delete_state(group(request, delete)?).await)
        }
        "read" => {
            let read = |p: &Value| {
                let (partition, leader_epoch) = (int(p, "partition")?, int(p, "leader_epoch")?);
                Ok(ReadPartition { partition, leader_epoch })
            };
            let GroupRequest { group_id, topics } = group(request, read)?;
            let accepts_pending = request["accepts_pending"] == true;
            let request = ReadRequest { group_id, accepts_pending, topics };
            results(&persister.read_state(request).await, read_result)
        }
        "summary" => {
            let summary = |p: &Value| {
                let (partition, leader_epoch) = (int(p, "partition")?, int(p, "leader_epoch")?);
                Ok(SummaryPartition { partition, leader_epoch })
            };
            results(&persister.read_summary(group(request, summary)?).await, summary_result)
        }
        "stage" => done(&persister.txn_share_acknowledge(stage(request)?).await),
        "marker" => {
            let results = persister.write_txn_markers(vec![marker(request)?]).await;
            let partitions = results.iter().flat_map(|r| &r.topics).flat_map(|t| &t.partitions);
            partitions.map(|p| json!([p.partition_index, p.error_code])).collect()
        }
        other => return Err(format!("no call {other}").into()),
    })
}

fn int<T: TryFrom<i64>>(value: &Value, field: &str) -> Result<T, Failure> {
    let number = value[field].as_i64().and_then(|number| T::try_from(number).ok());
    number.ok_or_else(|| format!("{field} is missing or out of range").into())
}

fn text(value: &Value, field: &str) -> Result<String, Failure> {
    Ok(value[field].as_str().ok_or_else(|| format!("{field} is missing"))?.to_owned())
}

fn list<T>(
    value: &Value,
    field: &str,
    item: impl Fn(&Value) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    value[field].as_array().ok_or_else(|| format!("{field} is missing"))?.iter().map(item).collect()
}

fn group<P>(
    request: &Value,
    partition: impl Fn(&Value) -> Result<P, Failure>,
) -> Result<GroupRequest<P>, Failure> {
    let topic = |topic: &Value| {
        let topic_id = Uuid::parse_str(&text(topic, "topic_id")?)?;
        Ok(TopicData { topic_id, partitions: list(topic, "partitions", &partition)? })
    };
    Ok(GroupRequest { group_id: text(request, "group")?, topics: list(request, "topics", topic)? })
}

fn initialize(p: &Value) -> Result<InitializePartition, Failure> {
    Ok(InitializePartition {
        partition: int(p, "partition")?,
        state_epoch: int(p, "state_epoch")?,
        start_offset: int(p, "start_offset")?,
    })
}

fn write(p: &Value) -> Result<WritePartition, Failure> {
    Ok(WritePartition {
        partition: int(p, "partition")?,
        state_epoch: int(p, "state_epoch")?,
        leader_epoch: int(p, "leader_epoch")?,
        start_offset: int(p, "start_offset")?,
        delivery_complete_count: int(p, "delivery_complete_count")?,
        state_batches: list(p, "batches", |b| {
            Ok(StateBatch {
                first_offset: int(b, "first")?,
                last_offset: int(b, "last")?,
                delivery_state: DeliveryState(int(b, "state")?),
                delivery_count: int(b, "count")?,
            })
        })?,
    })
}

fn stage(request: &Value) -> Result<TxnShareAcknowledgeRequest, Failure> {
    let acks = |b: &Value| {
        Ok(AcknowledgementBatch {
            first_offset: int(b, "first")?,
            last_offset: int(b, "last")?,
            acknowledge_types: list(b, "types", |t| {
                Ok(t.as_i64().and_then(|t| i8::try_from(t).ok()).ok_or("an ack type")?)
            })?,
            delivery_count: int(b, "count")?,
            reject_target: DeliveryState::ARCHIVED,
            abort_target: DeliveryState::AVAILABLE,
        })
    };
    let partition = |p: &Value| {
        Ok(AcknowledgePartition {
            partition: int(p, "partition")?,
            state_epoch: int(p, "state_epoch")?,
            leader_epoch: int(p, "leader_epoch")?,
            batches: list(p, "batches", acks)?,
        })
    };
    let GroupRequest { group_id, topics } = group(request, partition)?;
    Ok(TxnShareAcknowledgeRequest {
        group_id,
        transactional_id: text(request, "transactional_id")?,
        producer_id: int(request, "producer_id")?,
        producer_epoch: int(request, "producer_epoch")?,
        member_id: text(request, "member_id")?,
        member_epoch: int(request, "member_epoch")?,
        transaction_version: 2,
        two_phase: false,
        topics,
    })
}

fn marker(request: &Value) -> Result<TxnMarker, Failure> {
    Ok(TxnMarker {
        producer_id: int(request, "producer_id")?,
        producer_epoch: int(request, "producer_epoch")?,
        transaction_result: request["commit"] == true,
        topics: vec![TxnMarkerTopic {
            name: SHARE_GROUP_STATE_TOPIC.to_owned(),
            partition_indexes: vec![0],
        }],
        coordinator_epoch: int(request, "coordinator_epoch")?,
        transaction_version: 2,
    })
}

fn results<R>(topics: &[TopicData<R>], told: impl Fn(&R) -> Value) -> Value {
    topics.iter().flat_map(|topic| &topic.partitions).map(told).collect()
}

fn done(topics: &[TopicData<PartitionResult>]) -> Value {
    results(topics, |r| json!([r.partition, r.error_code, r.error_message]))
}

fn read_result(r: &ReadResult) -> Value {
    let batches = r.state_batches.iter().map(|b| {
        let staged = b.staged.map(|s| json!([s.producer_id, s.producer_epoch, s.ack_type as i8]));
        json!([b.first_offset, b.last_offset, b.delivery_state.0, b.delivery_count, staged])
    });
    let batches: Vec<_> = batches.collect();
    json!([r.partition, r.error_code, r.error_message, r.state_epoch, r.start_offset, batches])
}

fn summary_result(r: &SummaryResult) -> Value {
    json!([r.partition, r.error_code, r.start_offset, r.delivery_complete_count])
}

/// The service and a client of it, end to end.
fn once(runtime: &tokio::runtime::Runtime) -> Result<(), Failure> {
    let dir = tempfile::tempdir()?;
    let topic = Uuid::new_v4();
    println!("-- a group coordinator and two partition leaders");
    session(runtime, dir.path(), &before_restart(topic))?;
    println!("-- the broker is started again; the transaction is still open");
    session(runtime, dir.path(), &after_restart(topic))?;
    println!("-- done");
    Ok(())
}

/// Serves these requests on one connection, then stops and closes the store.
fn session(
    runtime: &tokio::runtime::Runtime,
    dir: &Path,
    requests: &[(Value, Value)],
) -> Result<(), Failure> {
    let persister = open(dir)?;
    let store = persister.store().clone();
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let server = tokio::spawn(accept(listener, persister));
        let mut socket = TcpStream::connect(address).await?;
        for (request, expected) in requests {
            send(&mut socket, request).await?;
            let answer = receive(&mut socket).await?.ok_or("the server hung up")?;
            println!("{:>10} -> {answer}", request["call"].as_str().unwrap_or_default());
            if answer != *expected {
                return Err(format!("expected {expected}").into());
            }
        }
        server.abort();
        store.close().await?;
        Ok(())
    })
}

/// A request about partitions of one topic in the group "billing".
fn about(call: &str, topic: Uuid, partitions: Value) -> Value {
    let topics = json!([{ "topic_id": topic.to_string(), "partitions": partitions }]);
    json!({ "call": call, "group": "billing", "topics": topics })
}

fn with(mut request: Value, fields: Value) -> Value {
    if let (Some(request), Value::Object(fields)) = (request.as_object_mut(), fields) {
        request.extend(fields);
    }
    request
}

fn before_restart(topic: Uuid) -> Vec<(Value, Value)> {
    let start = |p| json!({ "partition": p, "state_epoch": 1, "start_offset": 0 });
    let lead = |p| json!({ "partition": p, "leader_epoch": 2 });
    let write = |p, epoch| {
        let batches = json!([{ "first": 0, "last": 9, "state": 2, "count": 1 }]);
        json!({ "partition": p, "state_epoch": 1, "leader_epoch": epoch, "start_offset": 0,
                "delivery_complete_count": 10, "batches": batches })
    };
    let batches = json!([{ "first": 10, "last": 12, "types": [1, 1, 3], "count": 1 }]);
    let ack = json!({ "partition": 0, "state_epoch": 1, "leader_epoch": 2, "batches": batches });
    let transaction = json!({ "transactional_id": "payments-7", "producer_id": 4711,
        "producer_epoch": 0, "member_id": "consumer-1", "member_epoch": 1 });
    let fenced = "The leader epoch in the request is older than the epoch on the broker. \
                  (leader epoch 1 is below the fence 2)";
    vec![
        (
            about("initialize", topic, json!([start(0), start(1)])),
            json!([[0, 0, null], [1, 0, null]]),
        ),
        (
            about("read", topic, json!([lead(0), lead(1)])),
            json!([[0, 0, null, 1, 0, []], [1, 0, null, 1, 0, []]]),
        ),
        (
            about("write", topic, json!([write(0, 2), write(1, 1)])),
            json!([[0, 0, null], [1, 74, fenced]]),
        ),
        (with(about("stage", topic, json!([ack])), transaction), json!([[0, 0, null]])),
    ]
}

fn after_restart(topic: Uuid) -> Vec<(Value, Value)> {
    let lead = json!([{ "partition": 0, "leader_epoch": 3 }]);
    let both =
        json!([{ "partition": 0, "leader_epoch": 0 }, { "partition": 1, "leader_epoch": 0 }]);
    let marker = json!({ "call": "marker", "producer_id": 4711, "producer_epoch": 1,
        "coordinator_epoch": 5, "commit": true });
    let pending =
        json!([[0, 9, 2, 1, null], [10, 11, 5, 1, [4711, 0, 1]], [12, 12, 5, 1, [4711, 0, 3]]]);
    let resolved = json!([[0, 11, 2, 1, null], [12, 12, 4, 1, null]]);
    let accepts = json!({ "accepts_pending": true });
    vec![
        (with(about("read", topic, lead.clone()), accepts), json!([[0, 0, null, 1, 0, pending]])),
        (marker, json!([[0, 0]])),
        (about("read", topic, lead), json!([[0, 0, null, 1, 0, resolved]])),
        (about("summary", topic, both), json!([[0, 0, 0, 13], [1, 0, 0, 0]])),
        (about("delete", topic, json!([{ "partition": 0 }])), json!([[0, 0, null]])),
    ]
}

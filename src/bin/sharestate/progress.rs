//! Progress bars: on the standard error, and only when that is a terminal.

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sharestate::inspect::Progress;

/// A progress bar, or nothing.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new() -> Self {
        let target = if std::io::stderr().is_terminal() {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        Self(ProgressBar::with_draw_target(None, target))
    }

    /// Shows how far it has come.
    pub fn show(&self, progress: Progress) {
        let Progress { stage, done, total } = progress;
        if self.0.message() != stage {
            self.0.set_message(stage);
            let template = if total == 0 {
                "{spinner} {msg} {human_pos}"
            } else {
                "{msg} [{bar:40}] {human_pos}/{human_len}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                self.0.set_style(style);
            }
        }
        if total > 0 {
            self.0.set_length(total);
        }
        self.0.set_position(done);
    }
}

impl Bar {
    /// Prints something without a bar in the middle of it.
    pub fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

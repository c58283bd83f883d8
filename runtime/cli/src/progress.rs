//! A progress bar that works under `mpiexec`.
//!
//! Under `mpiexec`, the stderr of a rank is a pipe to `mpiexec`. `mpiexec` tells the rank whether the
//! stderr of `mpiexec` is a terminal, and immediately forwards every line that ends in a carriage return.
//! So the bar is drawn as a line of text and a carriage return. If there is no terminal, nothing is drawn.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

/// Returns a progress bar for `length` steps, which is drawn on stderr. If `shown` is false, the bar is never
/// drawn.
pub fn bar(length: u64, shown: bool, what: &'static str) -> ProgressBar {
    if !shown {
        return ProgressBar::hidden();
    }
    let target = ProgressDrawTarget::term_like_with_hz(Box::new(CarriageReturns), 10);
    let bar = ProgressBar::with_draw_target(Some(length), target).with_message(what);
    match ProgressStyle::with_template("{msg} [{wide_bar:.cyan}] {pos}/{len}, {eta} left") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

/// Removes the bar from the screen.
pub fn finish(bar: &ProgressBar) {
    let drawn = !bar.is_hidden();
    bar.finish_and_clear();
    if drawn {
        clear();
    }
}

/// Makes room for a line of text. The next update draws the bar below the line.
pub fn aside(bar: &ProgressBar) {
    if !bar.is_hidden() {
        clear();
    }
}

/// Overwrites the bar with blanks.
fn clear() {
    let width = usize::from(WIDTH);
    // If writing fails, the terminal is gone, and nobody sees the bar any more.
    let _nobody_watches = io::stderr().write_all(format!("{:width$}\r", "").as_bytes());
}

/// A terminal with one line for the `indicatif` crate. It draws with plain text and carriage returns only.
#[derive(Debug)]
struct CarriageReturns;

const WIDTH: u16 = 78;

impl TermLike for CarriageReturns {
    fn width(&self) -> u16 {
        WIDTH
    }

    fn move_cursor_up(&self, _lines: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_down(&self, _lines: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_right(&self, _columns: usize) -> io::Result<()> {
        Ok(())
    }

    fn move_cursor_left(&self, _columns: usize) -> io::Result<()> {
        Ok(())
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.write_str(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        // `indicatif` sometimes writes text that consists only of blanks. Such text must not be drawn.
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        // The text is padded with blanks to the full width so that it overwrites the previous text.
        let width = usize::from(WIDTH);
        io::stderr().write_all(format!("{text:<width$}\r").as_bytes())
    }

    /// Does nothing: the next line overwrites the old text, and clearing the line first would flicker.
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// The time between two updates of the bar's state. `indicatif` may draw the bar less often.
pub const TICK: Duration = Duration::from_millis(50);

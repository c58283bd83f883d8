//! A progress bar that works under `mpiexec`.
//!
//! Under `mpiexec` the stderr of a rank is a pipe. `mpiexec` tells the rank if there is a terminal at the
//! other end, and forwards lines that end in a carriage return at once. So this file draws the bar as a line
//! of text and a carriage return. Without a terminal it draws nothing.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

/// Returns a bar over `length` steps on stderr, or a hidden bar if `shown` is false.
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
        let width = usize::from(WIDTH);
        // A failure to draw the bar does no harm: the terminal is gone.
        let _nobody_watches = io::stderr().write_all(format!("{:width$}\r", "").as_bytes());
    }
}

/// A one-line terminal whose only control characters are carriage returns and spaces.
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
        // indicatif also writes pure padding, which must not become a line.
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        // Blanks up to the full width overwrite the previous text.
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

/// The time between two updates of the bar. The bar itself limits how often it draws.
pub const TICK: Duration = Duration::from_millis(50);

//! A progress bar that survives `mpiexec`.
//!
//! Under mpiexec the rank's stderr is a pipe, while the user sits at a terminal at its other end:
//! mpiexec says so, and passes on lines that end in a carriage return. So the bar is drawn here in
//! the simplest way there is: text, then a carriage return. Without a terminal nothing is drawn.

use std::io::{self, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

/// A bar over `length` steps on stderr, or a silent one when `shown` is false.
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

/// Takes the bar off the screen.
pub fn finish(bar: &ProgressBar) {
    let drawn = !bar.is_hidden();
    bar.finish_and_clear();
    if drawn {
        let width = usize::from(WIDTH);
        // As for every drawing of the bar: if the terminal is gone, nobody misses it.
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
        // Padding that indicatif adds is not a line of its own.
        let text = text.trim_end();
        if text.is_empty() {
            return Ok(());
        }
        // Blanks up to the full width cover the line before.
        let width = usize::from(WIDTH);
        io::stderr().write_all(format!("{text:<width$}\r").as_bytes())
    }

    /// Comes before every line, which covers the old one anyway: clearing first would flicker.
    fn clear_line(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Time between two looks at the bar; drawing is limited again by the bar itself.
pub const TICK: Duration = Duration::from_millis(50);

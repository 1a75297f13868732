//! The command `fencepost`.

mod command;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    // A panic is a bug of ours, and says so.
    std::panic::set_hook(Box::new(|info| eprintln!("fencepost: this is a bug of ours: {info}")));
    std::panic::catch_unwind(command::run).unwrap_or(ExitCode::from(70))
}

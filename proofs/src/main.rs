//! The command `fencepost`.

mod command;
mod judged;
mod proven;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        // Whoever reads has had enough, or there is no room left to write to: neither is a bug.
        if text.contains("failed printing to") {
            std::process::exit(if text.contains("Broken pipe") { 141 } else { 74 });
        }
        eprintln!("fencepost: this is a bug of ours: {text}");
    }));
    std::panic::catch_unwind(command::run).unwrap_or(ExitCode::from(70))
}

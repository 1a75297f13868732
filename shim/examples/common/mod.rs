//! What the examples share: which device to run on.

use fencepost_vulkan::{Device, Error, OpenOptions, Options};

/// What the command line asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DriverChoice {
    Vulkan,
    Simulated,
}

/// `--driver sim` or `--driver vulkan` (unless told).
pub fn driver() -> DriverChoice {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().flat_map(|a| a.split('=')).collect();
    match words[..] {
        [] | ["--driver", "vulkan"] => DriverChoice::Vulkan,
        ["--driver", "sim"] => DriverChoice::Simulated,
        _ => {
            eprintln!("unknown arguments {arguments:?}; allowed: --driver sim, --driver vulkan");
            std::process::exit(2);
        }
    }
}

#[allow(dead_code)] // `adopt` brings its own.
pub fn open() -> Result<Device, Error> {
    let device = match driver() {
        DriverChoice::Vulkan => Device::open(&OpenOptions::default(), Options::default())?,
        DriverChoice::Simulated => Device::simulated(1, Options::default()),
    };
    eprintln!("on {}, {} queues", device.name(), device.queues().len());
    Ok(device)
}

/// Prints the error and fails.
pub fn end(result: Result<(), Error>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

//! What a command buffer holds, and where it is used.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call::{Access, Handle, Site};
use super::order::Classes;

/// A command that bears on order.
#[derive(Clone, Debug)]
pub(super) enum Command {
    Set {
        event: Handle,
        first: Classes,
        /// Its generation when it is submitted for the first time.
        generation: u64,
    },
    Reset {
        event: Handle,
        first: Classes,
    },
    Wait {
        event: Handle,
        second: Classes,
    },
    Barrier {
        first: Classes,
        second: Classes,
    },
    Access {
        access: Access,
        classes: Classes,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Recorded {
    pub site: Site,
    /// The command buffer that it was recorded into: a secondary one keeps its name in the primary.
    pub command_buffer: Handle,
    pub command: Command,
}

impl Recorded {
    /// The event that the command names.
    pub fn event(&self) -> Option<Handle> {
        match self.command {
            Command::Set { event, .. } | Command::Reset { event, .. } | Command::Wait { event, .. } => Some(event),
            Command::Barrier { .. } | Command::Access { .. } => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing to run: fresh, reset or used up.
    Initial,
    Recording,
    Executable,
}

#[derive(Clone, Debug)]
pub(super) struct CommandBuffer {
    pub pool: Handle,
    pub state: State,
    pub one_time: bool,
    pub simultaneous: bool,
    pub commands: Arc<Vec<Recorded>>,
    /// Secondary command buffers that it executes.
    pub secondaries: Vec<Handle>,
    /// It was submitted since it was begun.
    pub submitted: bool,
    /// A submission of it was refused since it was begun.
    pub refused: bool,
    /// Batches that may still run it.
    pub batches: Vec<u64>,
    /// The last call that changed its state.
    pub site: Option<Site>,
    /// When it was begun.
    pub begun: u64,
}

impl CommandBuffer {
    pub fn new(pool: Handle) -> CommandBuffer {
        CommandBuffer {
            pool,
            state: State::Initial,
            one_time: false,
            simultaneous: false,
            commands: Arc::default(),
            secondaries: Vec::new(),
            submitted: false,
            refused: false,
            batches: Vec::new(),
            site: None,
            begun: 0,
        }
    }

    /// Lets go of what was recorded.
    pub fn clear(&mut self, site: Site) {
        self.state = State::Initial;
        self.commands = Arc::default();
        self.secondaries.clear();
        (self.submitted, self.refused) = (false, false);
        self.site = Some(site);
    }
}

//! The rows of the history table, each a protocol that somebody shipped or proposed.

mod fencepost;
mod ggml;
mod native;
mod row1;
mod row2;
mod row3;
mod row4;
mod row5;
mod row6;
mod row7;
mod row8;
mod row9;
mod timeline;

pub use self::fencepost::Fencepost;
pub use self::ggml::Ggml;
pub use self::row1::Row1;
pub use self::row2::Row2;
pub use self::row3::Row3;
pub use self::row4::Row4;
pub use self::row5::Row5;
pub use self::row6::Row6;
pub use self::row7::Row7;
pub use self::row8::Row8;
pub use self::row9::Row9;

/// A row of the table: its protocol in a line, and where that is from.
pub struct Row {
    pub number: u8,
    pub protocol: &'static str,
    pub source: &'static str,
}

/// Every row.
pub const ROWS: [Row; 11] = [
    Row {
        number: 1,
        protocol: "one VkEvent reset by the host, wait never submitted",
        source: "llama.cpp before PR 20518",
    },
    Row { number: 2, protocol: "the same with the wait submitted", source: "PR 20518, first fix" },
    Row { number: 3, protocol: "one VkEvent, reset in the queue before the set", source: "PR 20518, second try" },
    Row { number: 4, protocol: "pending and submitted lists, freed at synchronize", source: "PR 20518, third try" },
    Row { number: 5, protocol: "submitted list only, command-buffer use counter", source: "PR 20518 as merged" },
    Row { number: 6, protocol: "row 5 with copies on a transfer queue", source: "before PR 25229" },
    Row { number: 7, protocol: "row 6, the transfer queue waits too", source: "PR 25229" },
    Row { number: 8, protocol: "one-shot fence: create, record, wait, destroy", source: "CubeCL EventFence" },
    Row { number: 9, protocol: "timed events pooled when dropped", source: "CubeCL event pool" },
    Row { number: 10, protocol: "Fencepost: retire by frontier", source: "this project" },
    Row { number: 11, protocol: "Fencepost without VkEvents", source: "this project" },
];

/// Runs a generic function with the protocol of a row.
#[macro_export]
macro_rules! with_row {
    ($row:expr, $system:ident => $body:expr, $setup:expr) => {{
        use $crate::history as h;
        macro_rules! as_row {
            ($protocol:ty) => {{
                let $system = $crate::world::System::<$protocol>::new($setup);
                $body
            }};
        }
        match $row {
            1 => as_row!(h::Ggml<h::Row1>),
            2 => as_row!(h::Ggml<h::Row2>),
            3 => as_row!(h::Ggml<h::Row3>),
            4 => as_row!(h::Ggml<h::Row4>),
            5 => as_row!(h::Ggml<h::Row5>),
            6 => as_row!(h::Ggml<h::Row6>),
            7 => as_row!(h::Ggml<h::Row7>),
            8 => as_row!(h::Row8),
            9 => as_row!(h::Row9),
            _ => as_row!(h::Fencepost),
        }
    }};
}

//! One line of a trace: its fields, and the call they stand for.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// A name of an object.
pub type Name<'a> = Cow<'a, str>;

/// A semaphore with a value and stages.
#[derive(Debug, Deserialize)]
pub struct Value<'a> {
    #[serde(borrow)]
    pub semaphore: Name<'a>,
    #[serde(default)]
    pub value: u64,
    pub stage: Option<u64>,
}

/// One batch of a submission.
#[derive(Debug, Deserialize)]
pub struct Submit<'a> {
    #[serde(borrow, default)]
    pub wait: Vec<Value<'a>>,
    #[serde(borrow, default)]
    pub command_buffers: Vec<Name<'a>>,
    #[serde(borrow, default)]
    pub signal: Vec<Value<'a>>,
}

/// The stages of one dependency.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Dependency {
    pub src_stage: u64,
    pub dst_stage: u64,
}

/// One region of a copy.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Region {
    pub src_offset: u64,
    pub dst_offset: u64,
    pub size: u64,
}

/// A range that a command reads or writes.
#[derive(Debug, Deserialize)]
pub struct Access<'a> {
    #[serde(borrow)]
    pub buffer: Name<'a>,
    #[serde(default)]
    pub offset: u64,
    pub size: Option<u64>,
    #[serde(default)]
    pub write: bool,
}

macro_rules! fields {
    ($($field:ident: $kind:ty, $name:literal;)*) => {
        /// Every field that some call has. What a line does not have is `None`.
        #[derive(Debug, Default)]
        pub struct Fields<'a> {
            $(pub $field: Option<$kind>,)*
            /// Fields that no call has.
            pub unknown: u64,
        }

        impl<'de: 'a, 'a> Visitor<'de> for Reading<'a> {
            type Value = Fields<'a>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Fields<'a>, M::Error> {
                let mut fields = Fields::default();
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    match &*key.0 {
                        $($name => fields.$field = map.next_value().map_err(|e| {
                            M::Error::custom(format_args!("field \"{}\": {e}", $name))
                        })?,)*
                        other => {
                            fields.unknown += u64::from(!SILENT.contains(&other));
                            map.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(fields)
            }
        }
    };
}

fields! {
    note: IgnoredAny, "note";
    end: Name<'a>, "end";
    call: Name<'a>, "call";
    returned: Name<'a>, "return";
    thread: u32, "thread";
    result: i64, "result";
    queue: Name<'a>, "queue";
    command_pool: Name<'a>, "command_pool";
    command_buffer: Name<'a>, "command_buffer";
    command_buffers: Vec<Name<'a>>, "command_buffers";
    secondaries: Vec<Name<'a>>, "secondaries";
    flags: u64, "flags";
    event: Name<'a>, "event";
    events: Vec<Name<'a>>, "events";
    stage: u64, "stage";
    src_stage: u64, "src_stage";
    dst_stage: u64, "dst_stage";
    dependencies: Vec<Dependency>, "dependencies";
    semaphore: Name<'a>, "semaphore";
    value: u64, "value";
    initial_value: u64, "initial_value";
    external: bool, "external";
    wait: Vec<Value<'a>>, "wait";
    any: bool, "any";
    fence: Name<'a>, "fence";
    fences: Vec<Name<'a>>, "fences";
    wait_all: bool, "wait_all";
    submits: Vec<Submit<'a>>, "submits";
    buffer: Name<'a>, "buffer";
    size: u64, "size";
    src: Name<'a>, "src";
    src_offset: u64, "src_offset";
    dst: Name<'a>, "dst";
    dst_offset: u64, "dst_offset";
    regions: Vec<Region>, "regions";
    accesses: Vec<Access<'a>>, "accesses";
    bindings: Vec<Access<'a>>, "bindings";
}

/// Fields that are known and say nothing about order.
const SILENT: [&str; 11] = [
    "n",
    "signaled",
    "queue_family",
    "index",
    "memory_barriers",
    "buffer_barriers",
    "image_barriers",
    "groups",
    "timeout",
    "type",
    "data",
];

struct Reading<'a>(std::marker::PhantomData<&'a ()>);

/// A key, without a copy where it needs none.
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a field's name")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(text.into())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// Reads a line.
pub fn parse(text: &[u8]) -> Result<Fields<'_>, String> {
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let fields = deserializer.deserialize_map(Reading(std::marker::PhantomData)).map_err(words)?;
    deserializer.end().map_err(words)?;
    Ok(fields)
}

/// serde_json counts lines of its own, of which each text here is the first.
fn words(error: serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}

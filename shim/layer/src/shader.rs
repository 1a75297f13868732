//! Which storage buffers a shader may read and write, by what its SPIR-V declares.

use rustc_hash::{FxHashMap, FxHashSet};
use spirv::{Decoration, Op, StorageClass};

/// A storage buffer that a shader uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used {
    pub set: u32,
    pub binding: u32,
    /// It is not declared as non-writable.
    pub write: bool,
}

#[derive(Default)]
struct Module {
    sets: FxHashMap<u32, u32>,
    bindings: FxHashMap<u32, u32>,
    non_writable: FxHashSet<u32>,
    non_writable_members: FxHashMap<u32, FxHashSet<u32>>,
    /// Structures that are storage buffers in the way of SPIR-V before 1.3.
    buffer_blocks: FxHashSet<u32>,
    members: FxHashMap<u32, usize>,
    /// What pointers point to, and what arrays are of.
    of: FxHashMap<u32, u32>,
    /// Identifier, type and class.
    variables: Vec<(u32, u32, u32)>,
    touched: FxHashSet<u32>,
    entry_points: usize,
}

/// The storage buffers that the shader uses; none if that cannot be told: of what is no SPIR-V, or of several entry points.
pub fn storage_buffers(words: &[u32]) -> Vec<Used> {
    let Some(module) = scan(words).filter(|module| module.entry_points == 1) else { return Vec::new() };
    let used = module.variables.iter().filter_map(|(id, pointer, class)| {
        let mut block = *module.of.get(pointer)?;
        while let Some(element) = module.of.get(&block) {
            block = *element;
        }
        let storage = *class == StorageClass::StorageBuffer as u32
            || *class == StorageClass::Uniform as u32 && module.buffer_blocks.contains(&block);
        if !storage || !module.touched.contains(id) {
            return None;
        }
        let (set, binding) = (*module.sets.get(id)?, *module.bindings.get(id)?);
        let all = module.members.get(&block).copied().unwrap_or(usize::MAX);
        let read_only = module.non_writable_members.get(&block).is_some_and(|members| members.len() == all);
        Some(Used { set, binding, write: !read_only && !module.non_writable.contains(id) })
    });
    used.collect()
}

fn scan(words: &[u32]) -> Option<Module> {
    const HEADER: usize = 5;
    let mut module = Module::default();
    if words.first() != Some(&spirv::MAGIC_NUMBER) {
        return None;
    }
    let mut rest = words.get(HEADER..)?;
    while let Some(first) = rest.first() {
        let (op, length) = (first & 0xffff, (first >> 16) as usize);
        if length == 0 {
            return None;
        }
        module.instruction(op, rest.get(1..length)?);
        rest = &rest[length..];
    }
    Some(module)
}

impl Module {
    fn instruction(&mut self, op: u32, operands: &[u32]) {
        let is = |known: Op| op == known as u32;
        match *operands {
            [id, decoration, ref literals @ ..] if is(Op::Decorate) => match (decoration, literals) {
                (d, [set]) if d == Decoration::DescriptorSet as u32 => drop(self.sets.insert(id, *set)),
                (d, [binding]) if d == Decoration::Binding as u32 => drop(self.bindings.insert(id, *binding)),
                (d, _) if d == Decoration::NonWritable as u32 => drop(self.non_writable.insert(id)),
                (d, _) if d == Decoration::BufferBlock as u32 => drop(self.buffer_blocks.insert(id)),
                _ => {}
            },
            [id, member, decoration, ..] if is(Op::MemberDecorate) && decoration == Decoration::NonWritable as u32 => {
                self.non_writable_members.entry(id).or_default().insert(member);
            }
            [id, ref members @ ..] if is(Op::TypeStruct) => drop(self.members.insert(id, members.len())),
            [id, of, ..] if is(Op::TypeArray) || is(Op::TypeRuntimeArray) => drop(self.of.insert(id, of)),
            [id, _, of] if is(Op::TypePointer) => drop(self.of.insert(id, of)),
            [kind, id, class, ..] if is(Op::Variable) => self.variables.push((id, kind, class)),
            [_, _, base, ..] if POINTERS.iter().any(|known| is(*known)) => drop(self.touched.insert(base)),
            [_, _, _, ref arguments @ ..] if is(Op::FunctionCall) => self.touched.extend(arguments),
            _ if is(Op::EntryPoint) => self.entry_points += 1,
            _ => {}
        }
    }
}

/// Instructions whose third operand is a pointer that is followed.
const POINTERS: [Op; 6] = [
    Op::AccessChain,
    Op::InBoundsAccessChain,
    Op::PtrAccessChain,
    Op::InBoundsPtrAccessChain,
    Op::CopyObject,
    Op::Load,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn compile(source: &str) -> Vec<u32> {
        let module = naga::front::wgsl::parse_str(source).unwrap();
        let mut validator = naga::valid::Validator::new(Default::default(), Default::default());
        let info = validator.validate(&module).unwrap();
        naga::back::spv::write_vec(&module, &info, &Default::default(), None).unwrap()
    }

    #[test]
    fn a_shader_reads_what_it_declares_as_read_and_uses() {
        let words = compile(
            "@group(0) @binding(0) var<storage, read> a: array<u32>;
             @group(1) @binding(3) var<storage, read_write> b: array<u32>;
             @group(0) @binding(4) var<storage, read_write> unused: array<u32>;
             @group(0) @binding(5) var<uniform> u: vec4<u32>;
             @compute @workgroup_size(1) fn main() { b[0] = a[1] + u.x; }",
        );
        let expected = [Used { set: 0, binding: 0, write: false }, Used { set: 1, binding: 3, write: true }];
        assert_eq!(storage_buffers(&words), expected);
    }

    #[test]
    fn what_is_no_spirv_says_nothing() {
        let mut words = compile(
            "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
             @compute @workgroup_size(1) fn main() { a[0] = 1u; }",
        );
        assert_eq!(storage_buffers(&words), [Used { set: 0, binding: 0, write: true }]);
        let last = words.len() - 1;
        words[last] |= 9 << 16; // Longer than what is left.
        assert_eq!(storage_buffers(&words), []);
        words[5] = 0;
        assert_eq!(storage_buffers(&words), []);
        assert_eq!(storage_buffers(&words[..3]), []);
        assert_eq!(storage_buffers(&[]), []);
    }
}

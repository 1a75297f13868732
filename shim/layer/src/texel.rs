//! Which bytes of a buffer a copy to or from an image touches.

use ash::vk;

/// Width and height of a texel block, and its bytes, of one aspect: `None` for formats that are not of Vulkan 1.0.
/// Vulkan: "Compatible Formats" and "Buffer and Image Copies".
fn block(format: vk::Format, aspect: vk::ImageAspectFlags) -> Option<(u64, u64, u64)> {
    const ASTC: [(u64, u64); 14] = [
        (4, 4),
        (5, 4),
        (5, 5),
        (6, 5),
        (6, 6),
        (8, 5),
        (8, 6),
        (8, 8),
        (10, 5),
        (10, 6),
        (10, 8),
        (10, 10),
        (12, 10),
        (12, 12),
    ];
    let stencil = aspect == vk::ImageAspectFlags::STENCIL;
    let bytes = match format.as_raw() {
        1 | 9..=15 | 127 => 1,
        2..=8 | 16..=22 | 70..=76 | 124 => 2,
        23..=36 => 3,
        37..=69 | 77..=83 | 98..=100 | 122 | 123 | 125 | 126 => 4,
        84..=90 => 6,
        91..=97 | 101..=103 | 110..=112 => 8,
        104..=106 => 12,
        107..=109 | 113..=115 => 16,
        116..=118 => 24,
        119..=121 => 32,
        128..=130 if stencil => 1,
        128 => 2,
        129 | 130 => 4,
        131..=134 | 139..=140 | 147..=150 | 153..=154 => return Some((4, 4, 8)),
        135..=138 | 141..=146 | 151..=152 | 155..=156 => return Some((4, 4, 16)),
        astc @ 157..=184 => {
            let (width, height) = ASTC[(astc as usize - 157) / 2];
            return Some((width, height, 16));
        }
        _ => return None,
    };
    Some((1, 1, bytes))
}

/// Offsets and sizes of what the region touches: rows that follow each other without a gap are one.
pub fn ranges(format: vk::Format, region: &vk::BufferImageCopy) -> Vec<(u64, u64)> {
    let Some((width, height, bytes)) = block(format, region.image_subresource.aspect_mask) else { return Vec::new() };
    let or = |length: u32, extent: u32| u64::from(if length == 0 { extent } else { length });
    let extent = region.image_extent;
    let pitch = or(region.buffer_row_length, extent.width).div_ceil(width).saturating_mul(bytes);
    let plane = or(region.buffer_image_height, extent.height).div_ceil(height).saturating_mul(pitch);
    let row = u64::from(extent.width).div_ceil(width).saturating_mul(bytes);
    let rows = u64::from(extent.height).div_ceil(height);
    let layers = region.image_subresource.layer_count;
    let planes = u64::from(extent.depth) * u64::from(if layers == vk::REMAINING_ARRAY_LAYERS { 1 } else { layers });
    let mut all: Vec<(u64, u64)> = Vec::new();
    for at in 0..planes {
        let start = region.buffer_offset.saturating_add(at.saturating_mul(plane));
        if row == pitch {
            push(&mut all, start, row.saturating_mul(rows));
        } else {
            (0..rows).for_each(|at| push(&mut all, start.saturating_add(at.saturating_mul(pitch)), row));
        }
    }
    all
}

fn push(all: &mut Vec<(u64, u64)>, offset: u64, size: u64) {
    match all.last_mut() {
        Some((start, length)) if *start + *length == offset => *length += size,
        _ if size > 0 => all.push((offset, size)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(offset: u64, row_length: u32, image_height: u32, extent: [u32; 3], layers: u32) -> vk::BufferImageCopy {
        let subresource = vk::ImageSubresourceLayers::default().aspect_mask(vk::ImageAspectFlags::COLOR);
        let [width, height, depth] = extent;
        vk::BufferImageCopy::default()
            .buffer_offset(offset)
            .buffer_row_length(row_length)
            .buffer_image_height(image_height)
            .image_subresource(subresource.layer_count(layers))
            .image_extent(vk::Extent3D { width, height, depth })
    }

    #[test]
    fn rows_without_a_gap_are_one_range_and_others_are_not() {
        let rgba = vk::Format::R8G8B8A8_UNORM;
        assert_eq!(ranges(rgba, &region(64, 0, 0, [16, 4, 1], 1)), [(64, 256)]);
        assert_eq!(ranges(rgba, &region(64, 0, 0, [16, 4, 2], 3)), [(64, 1536)]);
        assert_eq!(ranges(rgba, &region(0, 20, 0, [16, 2, 1], 1)), [(0, 64), (80, 64)]);
        assert_eq!(ranges(rgba, &region(0, 0, 8, [16, 4, 2], 1)), [(0, 256), (512, 256)]);
    }

    #[test]
    fn blocks_of_a_compressed_format_are_counted_whole() {
        assert_eq!(ranges(vk::Format::BC1_RGB_UNORM_BLOCK, &region(0, 0, 0, [6, 6, 1], 1)), [(0, 32)]);
        assert_eq!(ranges(vk::Format::ASTC_12X12_SRGB_BLOCK, &region(0, 0, 0, [13, 12, 1], 1)), [(0, 32)]);
        assert_eq!(ranges(vk::Format::G8B8G8R8_422_UNORM, &region(0, 0, 0, [4, 4, 1], 1)), []);
    }

    #[test]
    fn an_aspect_of_a_packed_depth_format_has_its_own_size() {
        let mut stencil = region(0, 0, 0, [8, 8, 1], 1);
        stencil.image_subresource.aspect_mask = vk::ImageAspectFlags::STENCIL;
        assert_eq!(ranges(vk::Format::D24_UNORM_S8_UINT, &stencil), [(0, 64)]);
        stencil.image_subresource.aspect_mask = vk::ImageAspectFlags::DEPTH;
        assert_eq!(ranges(vk::Format::D24_UNORM_S8_UINT, &stencil), [(0, 256)]);
    }
}

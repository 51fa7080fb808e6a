//! What is packed in a kernel's package: the kernel itself, and its modules.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::error::VirtualError;

/// A program that unpacks.
struct Tool {
    name: &'static str,
    arguments: &'static [&'static str],
    package: &'static str,
    /// What it packs begins with.
    magic: &'static [u8],
}

/// Debian packs kernels with xz, from 6.12 on with zstd.
const TOOLS: [Tool; 2] = [
    Tool {
        name: "xz",
        arguments: &["-dc", "--single-stream"],
        package: "xz-utils",
        magic: &[0xfd, b'7', b'z', b'X', b'Z', 0],
    },
    Tool {
        name: "zstd",
        arguments: &["-dc"],
        package: "zstd",
        magic: &[0x28, 0xb5, 0x2f, 0xfd],
    },
];

/// What unpacks this; none where it is not packed, or in a way that is not known.
fn tool(bytes: &[u8]) -> Option<&'static Tool> {
    TOOLS.iter().find(|tool| bytes.starts_with(tool.magic))
}

/// The compressed kernel inside of a bzImage (Documentation/arch/x86/boot.rst: setup_sects at 0x1f1, payload_offset at
/// 0x248 and payload_length at 0x24c since protocol 2.08). Its last four bytes are the length of what was compressed.
pub(crate) fn payload(bz_image: &[u8]) -> Result<&[u8], &'static str> {
    let word = |at: usize| -> Option<usize> {
        let bytes = bz_image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    if bz_image.get(0x202..0x206) != Some(b"HdrS") {
        return Err("this is no kernel for x86 (there is no HdrS)");
    }
    let setup_sectors = match bz_image.get(0x1f1) {
        Some(0) | None => 4,
        Some(sectors) => usize::from(*sectors),
    };
    let (Some(offset), Some(length)) = (word(0x248), word(0x24c)) else {
        return Err("the kernel's header is too short");
    };
    let from = (setup_sectors + 1) * 512 + offset;
    let payload = bz_image.get(from..from + length.saturating_sub(4));
    let payload = payload.ok_or("the kernel's header points outside of the file")?;
    match tool(payload) {
        Some(_) => Ok(payload),
        None => Err("the kernel is not compressed with xz or zstd, as Debian's are"),
    }
}

/// What was packed; as it is, where it is not.
pub(crate) fn unpack(bytes: &[u8]) -> Result<Vec<u8>, VirtualError> {
    let Some(tool) = tool(bytes) else {
        return Ok(bytes.to_owned());
    };
    let mut child = Command::new(tool.name)
        .args(tool.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|_| VirtualError::NoProgram {
            program: tool.name.to_owned(),
            package: tool.package,
        })?;
    let stdin = child.stdin.take();
    let done = std::thread::scope(|scope| {
        // It ends by itself when it has enough; what it then does not take is no error.
        scope.spawn(|| stdin.map(|mut stdin| stdin.write_all(bytes)));
        child.wait_with_output()
    })
    .map_err(VirtualError::file(tool.name))?;
    if done.status.success() {
        Ok(done.stdout)
    } else {
        Err(VirtualError::Program {
            program: tool.name.to_owned(),
            cause: String::from_utf8_lossy(&done.stderr).trim().to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    #[test]
    fn what_is_no_kernel_is_refused_in_words() {
        assert!(payload(&[0; 1024]).unwrap_err().contains("HdrS"));
        let mut image = vec![0; 1024];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x24c..0x250].copy_from_slice(&5000u32.to_le_bytes());
        assert!(payload(&image).unwrap_err().contains("outside"));
    }

    #[test]
    fn the_payload_is_found_by_the_header() {
        let xz = [0xfd, b'7', b'z', b'X', b'Z', 0, 1, 2];
        let mut image = vec![0; 2 * 512];
        image[0x1f1] = 1;
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x248..0x24c].copy_from_slice(&16u32.to_le_bytes());
        image[0x24c..0x250].copy_from_slice(&12u32.to_le_bytes());
        image.extend([0; 16]);
        image.extend(xz);
        image.extend([9; 4]);
        assert_eq!(payload(&image).unwrap(), xz);
    }

    #[test]
    fn what_xz_or_zstd_has_packed_is_unpacked_and_anything_else_is_left_as_it_is() {
        let words = b"words ".repeat(100);
        assert_eq!(unpack(&words).unwrap(), words);
        for tool in &TOOLS {
            if which::which(tool.name).is_err() {
                eprintln!("SKIPPED: {} is not installed", tool.name);
                continue;
            }
            let packed = Command::new("sh")
                .arg("-c")
                .arg(format!(
                    "yes 'words ' | tr -d '\\n' | head -c 600 | {} -c",
                    tool.name
                ))
                .output()
                .unwrap();
            assert!(packed.stdout.starts_with(tool.magic), "{}", tool.name);
            assert_eq!(unpack(&packed.stdout).unwrap(), words, "{}", tool.name);
        }
    }
}

//! The memory that host and guest share: how far the guest is, and at the end what its commands wrote.
//!
//! The host gives a file as the memory of an ivshmem device; the guest maps the device's second region. A store to it
//! is a store: unlike a disk or a network it takes no time that depends on the host, so that asking how far the guest
//! is does not disturb its clock.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Cursor};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapMut, MmapOptions};

/// Room for what comes back. A region's size is a power of two.
pub(crate) const MAILBOX_BYTES: u64 = 256 << 20;

/// The archive begins here; before it are the words.
const ARCHIVE_AT: usize = 4096;

/// ivshmem's identity on the PCI bus (qemu, docs/specs/ivshmem-spec).
const PCI_VENDOR: &str = "0x1af4";
const PCI_DEVICE: &str = "0x1110";

/// The words at the beginning, by position.
#[derive(Clone, Copy)]
enum Word {
    Progress = 0,
    /// Bytes of the archive, and one: 0 while there is none.
    Archive = 1,
}

/// One side's view of the memory.
pub(crate) struct Mailbox {
    map: MmapMut,
}

impl Mailbox {
    /// The host's side: the file at `path`, which is made.
    pub(crate) fn create(path: &Path) -> io::Result<Mailbox> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)?;
        file.set_len(MAILBOX_BYTES)?;
        Mailbox::map(&file)
    }

    /// The guest's side: the device.
    pub(crate) fn find() -> io::Result<Mailbox> {
        let device = find_device()?;
        fs::write(device.join("enable"), "1")?;
        let region = OpenOptions::new()
            .read(true)
            .write(true)
            .open(device.join("resource2"))?;
        Mailbox::map(&region)
    }

    fn map(file: &File) -> io::Result<Mailbox> {
        let length = usize::try_from(MAILBOX_BYTES).map_err(io::Error::other)?;
        // SAFETY: the other side writes to it while we have it, as it does to any shared memory. The words are only
        // touched as atomics; the archive is written by the guest before it stores its length and is read by the host
        // after it has seen that. The file is our own and never becomes shorter.
        let map = unsafe { MmapOptions::new().len(length).map_mut(file)? };
        Ok(Mailbox { map })
    }

    fn word(&self, word: Word) -> &AtomicU64 {
        let at = self.map.as_ptr().cast::<AtomicU64>();
        // SAFETY: a mapping begins at a page, so that it is aligned, and is longer than all words; both sides only
        // touch these bytes as atomics.
        unsafe { &*at.add(word as usize) }
    }

    pub(crate) fn tell_progress(&self, progress: u64) {
        self.word(Word::Progress).store(progress, Ordering::Relaxed);
    }

    pub(crate) fn progress(&self) -> u64 {
        self.word(Word::Progress).load(Ordering::Relaxed)
    }

    /// Packs the directory and tells the host that it is there.
    pub(crate) fn send(&mut self, directory: &Path) -> io::Result<()> {
        let room = Cursor::new(&mut self.map[ARCHIVE_AT..]);
        let mut archive = tar::Builder::new(room);
        archive.mode(tar::HeaderMode::Deterministic);
        archive.append_dir_all(".", directory)?;
        let bytes = archive.into_inner()?.position();
        self.word(Word::Archive).store(bytes + 1, Ordering::Release);
        Ok(())
    }

    /// Unpacks what was sent into the directory. False: nothing was.
    pub(crate) fn receive(&self, directory: &Path) -> io::Result<bool> {
        let Some(bytes) = self
            .word(Word::Archive)
            .load(Ordering::Acquire)
            .checked_sub(1)
        else {
            return Ok(false);
        };
        let end = usize::try_from(bytes)
            .ok()
            .and_then(|bytes| bytes.checked_add(ARCHIVE_AT))
            .filter(|end| *end <= self.map.len())
            .ok_or_else(|| io::Error::other("the guest told a length that cannot be"))?;
        tar::Archive::new(&self.map[ARCHIVE_AT..end]).unpack(directory)?;
        Ok(true)
    }
}

fn find_device() -> io::Result<PathBuf> {
    for entry in fs::read_dir("/sys/bus/pci/devices")? {
        let device = entry?.path();
        let is = |name: &str, value: &str| {
            fs::read_to_string(device.join(name)).is_ok_and(|text| text.trim() == value)
        };
        if is("vendor", PCI_VENDOR) && is("device", PCI_DEVICE) {
            return Ok(device);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::NotFound,
        "this machine has no memory that is shared with a host",
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    #[test]
    fn what_one_side_sends_the_other_receives() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("mailbox");
        let host = Mailbox::create(&file).unwrap();
        let mut guest = Mailbox::map(
            &OpenOptions::new()
                .read(true)
                .write(true)
                .open(&file)
                .unwrap(),
        )
        .unwrap();
        let (from, to) = (here.path().join("from"), here.path().join("to"));
        fs::create_dir_all(from.join("deep")).unwrap();
        fs::write(from.join("deep/file"), b"words").unwrap();

        assert!(!host.receive(&to).unwrap(), "nothing was sent yet");
        guest.tell_progress(7);
        guest.send(&from).unwrap();
        assert_eq!(host.progress(), 7);
        assert!(host.receive(&to).unwrap());
        assert_eq!(fs::read(to.join("deep/file")).unwrap(), b"words");
    }
}

//! A whole map read in few system calls.

use std::os::fd::AsRawFd;

use libbpf_rs::MapCore;

/// So many elements a system call. A hash map's bucket has to fit, and never holds more than a few.
const BATCH: u32 = 4096;

/// Calls `each` with key and value of every element, in no order. What comes or goes meanwhile may be seen or not.
///
/// libbpf-rs has an iterator for this, which takes a batch that is not full for the last one; the kernel also ends a
/// batch where the next bucket would not fit.
pub(crate) fn for_each(
    map: &(impl MapCore + ?Sized),
    mut each: impl FnMut(&[u8], &[u8]),
) -> std::io::Result<()> {
    let (key_bytes, value_bytes) = (map.key_size() as usize, map.value_size() as usize);
    let mut keys = vec![0u8; key_bytes * BATCH as usize];
    // The kernel rounds values up to 8 bytes where it copies them.
    let mut values = vec![0u8; value_bytes.next_multiple_of(8) * BATCH as usize];
    // Where the next batch begins: a bucket's number. Keys are longer than that.
    let mut place = vec![0u8; key_bytes.max(size_of::<u32>())];
    let mut begun = false;
    loop {
        let mut count = BATCH;
        let from = if begun {
            place.as_mut_ptr()
        } else {
            std::ptr::null_mut()
        };
        // SAFETY: the buffers have room for BATCH keys and values of the map's sizes, and `place` for a key; all live
        // through the call. The kernel reads `from` before it writes `place`, which may be the same memory.
        let code = unsafe {
            libbpf_sys::bpf_map_lookup_batch(
                map.as_fd().as_raw_fd(),
                from.cast(),
                place.as_mut_ptr().cast(),
                keys.as_mut_ptr().cast(),
                values.as_mut_ptr().cast(),
                &raw mut count,
                std::ptr::null(),
            )
        };
        let last = match code {
            0 => false,
            code if code == -libc::ENOENT => true,
            code if code == -libc::EINTR => continue,
            code => return Err(std::io::Error::from_raw_os_error(-code)),
        };
        let pairs = keys
            .chunks_exact(key_bytes)
            .zip(values.chunks_exact(value_bytes));
        for (key, value) in pairs.take(count as usize) {
            each(key, value);
        }
        if last {
            return Ok(());
        }
        begun = true;
    }
}

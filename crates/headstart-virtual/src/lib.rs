//! A kernel in virtual time: Debian's own kernel in a software-emulated machine whose clock is its instruction
//! count. The same files give the same run, byte for byte, however busy this machine is.
//!
//! [`KernelImage`] is the kernel: fetched with apt, unpacked, never installed. [`GuestFiles`] is what the guest sees:
//! programs of this machine with their libraries. [`Machine`] boots the one with the other, has the commands of a
//! [`Job`] carried out by [`guest`], which is the guest's first process, and brings back what they wrote.

mod compressed;
mod error;
mod files;
pub mod guest;
mod image;
mod job;
mod machine;
mod mailbox;
mod modules;
mod packages;
mod place;

pub use error::VirtualError;
pub use files::GuestFiles;
pub use image::{KernelImage, cache_dir};
pub use job::{GuestCommand, Job, OUT, PROGRESS};
pub use machine::{Ended, Finished, INIT, Machine};

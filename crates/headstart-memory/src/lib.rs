//! The path memory beside the kernel's: on disk, and shared by a site.
//!
//! On disk it is one SQLite file, replaced as a whole in one transaction. Whatever ends a save in the middle, a kill, a
//! full disk, a power cut, the file holds the previous state. Ages survive a restart: within one boot by the clock that
//! goes on while the machine sleeps, across boots by the wall clock, and nothing is believed where that has jumped back.
//!
//! A site's is in a store that all its servers ask, Valkey or Redis: [`Site`].

mod clock;
mod place;
mod site;
mod store;

pub use clock::Now;
pub use place::default_file;
pub use site::{
    Local, Site, SiteConfig, SiteError, SitePaths, SiteState, SiteStatus, SiteUrl, SiteUrlError,
};
pub use store::{Store, StoreError};

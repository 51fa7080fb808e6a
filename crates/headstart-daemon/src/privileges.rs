//! The capabilities that the daemon goes on with; the others are gone for good.

use caps::{CapSet, Capability, CapsHashSet};

/// Loading and writing BPF maps, attaching to cgroups, walking connections.
const NEEDED: [Capability; 3] = [
    Capability::CAP_BPF,
    Capability::CAP_NET_ADMIN,
    Capability::CAP_PERFMON,
];

/// Drops all capabilities but those needed, from now on and for all threads that are started later.
pub(crate) fn drop_others() -> Result<(), caps::errors::CapsError> {
    let needed: CapsHashSet = NEEDED.into_iter().collect();
    let dropped: Vec<Capability> = caps::read(None, CapSet::Bounding)?
        .difference(&needed)
        .copied()
        .collect();
    for capability in dropped {
        caps::drop(None, CapSet::Bounding, capability)?;
    }
    caps::set(None, CapSet::Inheritable, &CapsHashSet::new())?;
    caps::set(None, CapSet::Effective, &needed)?;
    caps::set(None, CapSet::Permitted, &needed)
}

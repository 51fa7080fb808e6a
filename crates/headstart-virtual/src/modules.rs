//! Kernel modules out of a kernel's package: the wanted ones, with what they depend on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::VirtualError;

/// What a guest is given: devices of the path, markers of kernels before 6.6, the native congestion controls to
/// compare with, and the queues in which pacing can be done.
pub(crate) const WANTED: [&str; 8] = [
    "tun",
    "veth",
    "sch_ingress",
    "cls_bpf",
    "sch_fq",
    "tcp_bbr",
    "tcp_vegas",
    "tcp_westwood",
];

/// The modules of a package by name, with the file of each.
pub(crate) struct ModuleIndex {
    files: BTreeMap<String, PathBuf>,
}

impl ModuleIndex {
    /// All modules below `directory`.
    pub(crate) fn read(directory: &Path) -> Result<ModuleIndex, VirtualError> {
        let mut files = BTreeMap::new();
        let mut todo = vec![directory.to_owned()];
        while let Some(directory) = todo.pop() {
            let entries = fs::read_dir(&directory).map_err(VirtualError::file(&directory))?;
            for entry in entries {
                let path = entry.map_err(VirtualError::file(&directory))?.path();
                if path.is_dir() {
                    todo.push(path);
                } else if let Some(name) = module_name(&path) {
                    files.insert(name, path);
                }
            }
        }
        Ok(ModuleIndex { files })
    }

    /// The file of a module; none where it is not there: it may be built in.
    pub(crate) fn file(&self, name: &str) -> Option<&Path> {
        self.files.get(name).map(PathBuf::as_path)
    }
}

/// The wanted modules that exist and all that they depend on, what is depended on first. `content` reads a module;
/// `None`: there is none of that name.
pub(crate) fn in_order<E>(
    wanted: &[&str],
    mut content: impl FnMut(&str) -> Result<Option<Vec<u8>>, E>,
) -> Result<Vec<(String, Vec<u8>)>, E> {
    let mut ordered: Vec<(String, Vec<u8>)> = Vec::new();
    let mut todo: Vec<(String, Option<Vec<u8>>)> = wanted
        .iter()
        .rev()
        .map(|name| ((*name).to_owned(), None))
        .collect();
    while let Some((name, read)) = todo.pop() {
        if ordered.iter().any(|(other, _)| *other == name) {
            continue;
        }
        if let Some(bytes) = read {
            ordered.push((name, bytes));
        } else if let Some(bytes) = content(&name)? {
            let needs = dependencies(&bytes);
            todo.push((name, Some(bytes)));
            todo.extend(needs.into_iter().map(|need| (need, None)));
        }
    }
    Ok(ordered)
}

/// `sch-fq.ko.xz` is `sch_fq`.
fn module_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let stem = [".ko", ".ko.xz", ".ko.zst"]
        .iter()
        .find_map(|end| file.strip_suffix(end))?;
    Some(stem.replace('-', "_"))
}

/// A module's `.modinfo` section has `depends=a,b` between two zero bytes.
fn dependencies(module: &[u8]) -> Vec<String> {
    const KEY: &[u8] = b"\0depends=";
    let Some(at) = module.windows(KEY.len()).position(|window| window == KEY) else {
        return Vec::new();
    };
    let value = &module[at + KEY.len()..];
    let end = value
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end])
        .split(',')
        .filter(|name| !name.is_empty())
        .map(|name| name.replace('-', "_"))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed step of a test ends the test")]

    use super::*;

    #[test]
    fn what_is_depended_on_comes_first_and_once_and_what_is_built_in_is_left_out() {
        let content = |name: &str| -> Result<Option<Vec<u8>>, ()> {
            Ok(match name {
                "tcp" => Some(b"x\0license=GPL\0depends=lib-b,lib_a\0".to_vec()),
                "udp" => Some(b"x\0depends=lib_a\0".to_vec()),
                "lib_b" => Some(b"x\0depends=lib_a\0".to_vec()),
                "lib_a" => Some(b"x\0depends=\0".to_vec()),
                _ => None,
            })
        };
        let ordered = in_order(&["tcp", "built_in", "udp"], content).unwrap();
        let names: Vec<&str> = ordered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["lib_a", "lib_b", "tcp", "udp"]);
    }

    #[test]
    fn a_modules_name_is_its_files_with_underscores() {
        assert_eq!(module_name(Path::new("/m/sch-fq.ko.xz")).unwrap(), "sch_fq");
        assert_eq!(module_name(Path::new("/m/tun.ko")).unwrap(), "tun");
        assert_eq!(module_name(Path::new("/m/tun.ko.zst")).unwrap(), "tun");
        assert_eq!(module_name(Path::new("/m/modules.order")), None);
    }
}

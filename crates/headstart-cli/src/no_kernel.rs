//! The kernel verbs of a build without the kernel part: they say so, with exit code 3.

use anyhow::anyhow;

use crate::failure::Failure;

macro_rules! absent {
    ($verb:ident, $args:ident, $about:literal) => {
        pub(crate) mod $verb {
            use std::ffi::OsString;

            #[doc = $about]
            #[derive(clap::Args)]
            pub(crate) struct $args {
                #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
                _ignored: Vec<OsString>,
            }

            pub(crate) fn run(_args: &$args) -> Result<(), super::Failure> {
                Err(super::built_without(stringify!($verb)))
            }
        }
    };
}

absent!(
    compare,
    CompareArgs,
    "Not in this build: compare start-ups on the live kernel."
);
absent!(
    doctor,
    DoctorArgs,
    "Not in this build: say what this machine can do."
);
absent!(
    virtual_kernel,
    VirtualArgs,
    "Not in this build: a kernel in virtual time."
);
absent!(
    exec,
    ExecArgs,
    "Not in this build: run a program under a start-up."
);
absent!(
    paths,
    PathsArgs,
    "Not in this build: what is remembered of paths."
);

/// The verbs of the daemon.
pub(crate) mod daemon {
    use std::ffi::OsString;

    macro_rules! absent {
        ($verb:ident, $args:ident) => {
            /// Not in this build: a verb of the daemon.
            #[derive(clap::Args)]
            pub(crate) struct $args {
                #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
                _ignored: Vec<OsString>,
            }

            pub(crate) fn $verb(_args: &$args) -> Result<(), crate::failure::Failure> {
                Err(super::built_without(stringify!($verb)))
            }
        };
    }

    absent!(run, RunArgs);
    absent!(status, StatusArgs);
    absent!(top, TopArgs);
    absent!(explain, ExplainArgs);
    absent!(reload, ReloadArgs);
    absent!(off, OffArgs);
    absent!(on, OnArgs);
}

fn built_without(verb: &str) -> Failure {
    Failure::CannotHere(anyhow!(
        "{verb} is not in this build: it was made without the kernel part; install clang and llvm, then build with \
         cargo build -p headstart-cli --features kernel"
    ))
}

//! What goes wrong on the wire: the options of `headstart path` for loss, jitter, order and copies.

use std::fs;

use clap::Args;
use headstart_link::{
    Distribution, DistributionError, JitterSpec, LinkConfig, LossSpec, ReorderSpec, Share, Span,
};

/// The impairments of both directions. None is the default.
#[derive(Args, Debug)]
#[command(
    next_help_heading = "What goes wrong on the wire (server to client; --reverse-... the other way)"
)]
pub(super) struct WireArgs {
    /// Loss behind the queue: 1%, gilbert-elliott:p=1%,r=25%[,bad=100%,good=0%], or exactly packets:3,5,9
    #[arg(long)]
    loss: Option<LossSpec>,

    /// Extra delay for each packet, from none to this: 5ms, or 5ms,unordered if packets may overtake
    #[arg(long)]
    jitter: Option<JitterSpec>,

    /// Extra delay for each flow, the same for all its packets: exp:10ms, uniform:0ms,50ms,
    /// normal:50ms,10ms, lognormal:20ms,0.5, pareto:5ms,1.2,max=1s, empirical:FILE
    #[arg(long, value_name = "DISTRIBUTION", value_parser = delay_distribution)]
    flow_delay: Option<Distribution<Span>>,

    /// Packets that others overtake: 1%,by=10ms
    #[arg(long)]
    reorder: Option<ReorderSpec>,

    /// Packets that come twice: 0.1%
    #[arg(long, value_name = "SHARE")]
    duplicate: Option<Share>,

    /// Loss from client to server
    #[arg(long, value_name = "LOSS")]
    reverse_loss: Option<LossSpec>,

    /// Jitter from client to server
    #[arg(long, value_name = "JITTER")]
    reverse_jitter: Option<JitterSpec>,

    /// Extra delay for each flow from client to server
    #[arg(long, value_name = "DISTRIBUTION", value_parser = delay_distribution)]
    reverse_flow_delay: Option<Distribution<Span>>,

    /// Reordering from client to server
    #[arg(long, value_name = "REORDER")]
    reverse_reorder: Option<ReorderSpec>,

    /// Duplication from client to server
    #[arg(long, value_name = "SHARE")]
    reverse_duplicate: Option<Share>,

    /// Seed of everything that is drawn by lot, here and in the queues
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

impl WireArgs {
    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    pub(super) fn apply(&self, forward: &mut LinkConfig, reverse: &mut LinkConfig) {
        forward.loss.clone_from(&self.loss);
        forward.jitter = self.jitter;
        forward.flow_delay.clone_from(&self.flow_delay);
        forward.reorder = self.reorder;
        forward.duplicate = self.duplicate;
        forward.seed = self.seed;
        reverse.loss.clone_from(&self.reverse_loss);
        reverse.jitter = self.reverse_jitter;
        reverse.flow_delay.clone_from(&self.reverse_flow_delay);
        reverse.reorder = self.reverse_reorder;
        reverse.duplicate = self.reverse_duplicate;
        // The directions draw apart, but for what belongs to a flow.
        reverse.seed = !self.seed;
        (forward.flow_seed, reverse.flow_seed) = (self.seed, self.seed);
    }
}

/// A distribution, which may be in a file.
fn delay_distribution(text: &str) -> Result<Distribution<Span>, DistributionError> {
    let read = |file: &str| fs::read_to_string(file).map_err(|error| error.to_string());
    Distribution::parse_with(text, read)
}

//! Keeps what Python asks for of one run, as Arrow batches, lot by lot.

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use headstart_link::Counters;
use headstart_sim::study::Control;
use headstart_sim::{Observer, PacketFate, QueueSample, SimPacket, TransferDone, WindowSample};

use crate::columns::{self, RunName};

/// Rows become a batch when there are this many.
const LOT: usize = 1 << 14;

/// A packet at one moment.
pub(crate) struct PacketSeen {
    pub(crate) at_ns: u64,
    pub(crate) group: u32,
    pub(crate) packet: SimPacket,
    pub(crate) fate: PacketFate,
}

impl PacketSeen {
    pub(crate) fn fate_name(&self) -> &'static str {
        match self.fate {
            PacketFate::Sent => "sent",
            PacketFate::Came => "came",
            PacketFate::Dropped(_) => "dropped",
        }
    }
}

/// What a link has seen in a whole run.
pub(crate) struct LinkTotal {
    pub(crate) number: u32,
    pub(crate) counters: Counters,
    pub(crate) run_ns: u64,
}

/// Rows on their way into batches.
pub(crate) struct Lots<T> {
    rows: Vec<T>,
    batches: Vec<RecordBatch>,
    make: fn(&RunName<'_>, &[T]) -> Result<RecordBatch, ArrowError>,
}

impl<T> Lots<T> {
    fn new(make: fn(&RunName<'_>, &[T]) -> Result<RecordBatch, ArrowError>) -> Lots<T> {
        Lots {
            rows: Vec::new(),
            batches: Vec::new(),
            make,
        }
    }

    fn push(&mut self, run: &RunName<'_>, row: T, failed: &mut Option<ArrowError>) {
        self.rows.push(row);
        if self.rows.len() >= LOT {
            self.close(run, failed);
        }
    }

    fn close(&mut self, run: &RunName<'_>, failed: &mut Option<ArrowError>) {
        if self.rows.is_empty() {
            return;
        }
        match (self.make)(run, &self.rows) {
            Ok(batch) => self.batches.push(batch),
            Err(error) => *failed = Some(error),
        }
        self.rows.clear();
    }
}

/// The batches of one run.
#[derive(Default)]
pub(crate) struct RunBatches {
    pub(crate) transfers: Vec<RecordBatch>,
    pub(crate) flows: Vec<RecordBatch>,
    pub(crate) queues: Vec<RecordBatch>,
    pub(crate) packets: Vec<RecordBatch>,
}

/// An observer that keeps transfers always, and the rest where it is asked for.
pub(crate) struct Keeper<'a, const FLOWS: bool, const QUEUES: bool, const PACKETS: bool> {
    run: &'a RunName<'a>,
    control: &'a Control,
    failed: Option<ArrowError>,
    transfers: Lots<TransferDone>,
    flows: Lots<WindowSample>,
    queues: Lots<QueueSample>,
    packets: Lots<PacketSeen>,
}

impl<'a, const FLOWS: bool, const QUEUES: bool, const PACKETS: bool>
    Keeper<'a, FLOWS, QUEUES, PACKETS>
{
    pub(crate) fn new(run: &'a RunName<'a>, control: &'a Control) -> Self {
        Keeper {
            run,
            control,
            failed: None,
            transfers: Lots::new(columns::transfers),
            flows: Lots::new(columns::flows),
            queues: Lots::new(columns::queues),
            packets: Lots::new(columns::packets),
        }
    }

    pub(crate) fn finish(mut self) -> Result<RunBatches, ArrowError> {
        self.transfers.close(self.run, &mut self.failed);
        self.flows.close(self.run, &mut self.failed);
        self.queues.close(self.run, &mut self.failed);
        self.packets.close(self.run, &mut self.failed);
        match self.failed {
            Some(error) => Err(error),
            None => Ok(RunBatches {
                transfers: self.transfers.batches,
                flows: self.flows.batches,
                queues: self.queues.batches,
                packets: self.packets.batches,
            }),
        }
    }
}

impl<const FLOWS: bool, const QUEUES: bool, const PACKETS: bool> Observer
    for Keeper<'_, FLOWS, QUEUES, PACKETS>
{
    const WINDOWS: bool = FLOWS;
    const QUEUES: bool = QUEUES;
    const PACKETS: bool = PACKETS;

    fn transfer(&mut self, done: &TransferDone) {
        self.transfers.push(self.run, *done, &mut self.failed);
    }

    fn window(&mut self, sample: &WindowSample) {
        self.flows.push(self.run, *sample, &mut self.failed);
    }

    fn queue(&mut self, sample: &QueueSample) {
        self.queues.push(self.run, *sample, &mut self.failed);
    }

    fn packet(&mut self, at_ns: u64, group: u32, packet: &SimPacket, fate: PacketFate) {
        let seen = PacketSeen {
            at_ns,
            group,
            packet: *packet,
            fate,
        };
        self.packets.push(self.run, seen, &mut self.failed);
    }

    fn goes_on(&mut self) -> bool {
        !self.control.stopped()
    }
}

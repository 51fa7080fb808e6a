//! CUBIC, written from RFC 9438; sections are quoted as "4.2". Departures are named "DEVIATES:".

/// 5.1: "C SHOULD be set to 0.4", in packets a cubed second.
const C: f64 = 0.4;
/// 4.6: "beta_cubic SHOULD be 0.7".
const BETA: f64 = 0.7;
/// 4.3: 3 (1 - beta) / (1 + beta), the growth of Reno that reduces by the same factor.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
const NS_PER_S: f64 = 1e9;
/// Linux discards the samples of the first second of an epoch: they are of the recovery.
const EPOCH_WITHOUT_SAMPLES_NS: u64 = 1_000_000_000;
/// DEVIATES: as Linux, until a loss has told how large the window may be it grows by at least one
/// packet for 20 that are acknowledged.
const LEAST_SEARCH: f64 = 1.0 / 20.0;

/// Windows in packets, times in seconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cubic {
    /// When the present stage of growth began, in ns; none after a reduction.
    epoch_ns: Option<u64>,
    /// W_max, as fast convergence leaves it (4.7); 0: no loss yet.
    w_max: f64,
    /// The plateau of the present stage.
    origin: f64,
    k_s: f64,
    /// W_est: what Reno would have (4.3).
    w_est: f64,
    min_delay_us: u32,
}

impl Cubic {
    pub(super) fn takes_samples(&self, now_ns: u64) -> bool {
        self.epoch_ns
            .is_none_or(|epoch_ns| now_ns.saturating_sub(epoch_ns) >= EPOCH_WITHOUT_SAMPLES_NS)
    }

    pub(super) fn see_delay(&mut self, rtt_us: u32) {
        if self.min_delay_us == 0 || rtt_us < self.min_delay_us {
            self.min_delay_us = rtt_us.max(1);
        }
    }

    pub(super) fn min_delay_us(&self) -> u32 {
        self.min_delay_us
    }

    /// By how many packets `acked_pkts` let the window `cwnd` grow.
    pub(super) fn growth(&mut self, now_ns: u64, cwnd: f64, acked_pkts: u32) -> f64 {
        let epoch_ns = match self.epoch_ns {
            Some(epoch_ns) => epoch_ns,
            None => {
                // 4.2: the origin of the stage; K is 0 where the window is beyond W_max already.
                self.origin = self.w_max.max(cwnd);
                self.k_s = match self.w_max > cwnd {
                    true => cube_root((self.w_max - cwnd) / C),
                    false => 0.0,
                };
                self.w_est = cwnd;
                self.epoch_ns = Some(now_ns);
                now_ns
            }
        };
        let acked = f64::from(acked_pkts);
        // 4.2: target = W_cubic(t + RTT).
        let elapsed_ns = now_ns.saturating_sub(epoch_ns) + u64::from(self.min_delay_us) * 1000;
        let t_s = elapsed_ns as f64 / NS_PER_S - self.k_s;
        let target = C * t_s * t_s * t_s + self.origin;
        // 4.4 and 4.2: no more than half a window a round trip.
        let cubic = ((target - cwnd) / cwnd).clamp(0.0, 0.5);
        let cubic = match self.w_max > 0.0 {
            true => cubic,
            false => cubic.max(LEAST_SEARCH),
        };
        // 4.3: W_est = W_est + alpha_cubic * (segments_acked / cwnd). DEVIATES: as Linux, alpha stays what
        // it is beyond the last maximum.
        self.w_est += ALPHA * acked / cwnd;
        // 4.3: where Reno's window is larger it is the window. DEVIATES: as Linux, in whole packets, and
        // it is reached within a round trip and not at once.
        let reno = (self.w_est.floor() - cwnd) / cwnd;
        cubic.max(reno.min(0.5)) * acked
    }

    pub(super) fn reduced(&mut self, window_pkts: u32) -> u32 {
        let window = f64::from(window_pkts);
        self.epoch_ns = None;
        // 4.7: fast convergence.
        self.w_max = match window < self.w_max {
            true => (window * (1.0 + BETA) / 2.0).floor(),
            false => window,
        };
        ((window * BETA) as u32).max(2)
    }

    /// 4.9 (and 5.8): a reduction that was a mistake.
    pub(super) fn undone(&mut self, window_pkts: u32) {
        self.w_max = self.w_max.max(f64::from(window_pkts));
        self.epoch_ns = None;
    }

    /// 5.8: t does not include the time in which the application was what limited the sender.
    pub(super) fn rested(&mut self, idle_ns: u64, now_ns: u64) {
        if let Some(epoch_ns) = &mut self.epoch_ns {
            *epoch_ns = (*epoch_ns + idle_ns).min(now_ns);
        }
    }
}

/// By Newton's method, with additions, multiplications and divisions alone: the same bits on every
/// machine, which the C library's function does not promise.
fn cube_root(value: f64) -> f64 {
    if value <= 0.0 {
        return 0.0;
    }
    let mut root = if value > 1.0 { value } else { 1.0 };
    loop {
        let next = (2.0 * root + value / (root * root)) / 3.0;
        if next >= root || root - next < root * 1e-15 {
            return next;
        }
        root = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_root_is_one() {
        for value in [1e-9, 0.3, 1.0, 8.0, 1000.0, 123_456_789.0] {
            let root = cube_root(value);
            assert!((root * root * root / value - 1.0).abs() < 1e-12, "{value}");
        }
        assert_eq!(cube_root(0.0), 0.0);
    }

    /// 4.2: a window reduced to 0.7 W_max is W_max again after K = cbrt(W_max 0.3 / 0.4).
    #[test]
    fn the_window_is_back_at_its_maximum_after_k() {
        let (w_max, rtt_ns) = (1000u32, 100_000_000u64);
        let mut cubic = Cubic::default();
        cubic.see_delay(100_000);
        let mut cwnd = f64::from(cubic.reduced(w_max));
        assert_eq!(cwnd, 700.0);
        let k_s = (f64::from(w_max) * 0.3 / 0.4).cbrt();
        let mut now_ns = 0;
        while (now_ns as f64) < (k_s - 0.2) * 1e9 {
            cwnd += cubic.growth(now_ns, cwnd, 1);
            now_ns += (rtt_ns as f64 / cwnd) as u64;
        }
        assert!((cwnd - 1000.0).abs() < 2.0, "{cwnd} after {k_s} s");
    }

    #[test]
    fn a_second_loss_below_the_first_releases_bandwidth() {
        let mut cubic = Cubic::default();
        assert_eq!(cubic.reduced(1000), 700);
        assert_eq!(cubic.reduced(900), 630);
        assert!((cubic.w_max - 900.0 * 0.85).abs() < 1e-9);
    }

    /// 4.3, on a path so short that the cubic is slower than Reno.
    #[test]
    fn on_a_short_path_it_is_as_fast_as_reno_with_the_same_reduction() {
        let mut cubic = Cubic::default();
        cubic.see_delay(1000);
        let mut cwnd = f64::from(cubic.reduced(20));
        let start = cwnd;
        let mut now_ns = 0;
        for _ in 0..10 {
            // One round trip of 1 ms.
            let round = cwnd as u32;
            for _ in 0..round {
                cwnd += cubic.growth(now_ns, cwnd, 1);
            }
            now_ns += 1_000_000;
        }
        let reno = start + 10.0 * ALPHA;
        // Behind it by what is not a whole packet, and by less than one more on the way there.
        assert!((0.0..2.0).contains(&(reno - cwnd)), "{cwnd} is not {reno}");
    }
}

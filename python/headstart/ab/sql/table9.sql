-- Table 9: the tail of every service; the paper shows the one whose tail loses.
SELECT
    local_port,
    arm,
    count(*) AS transfers,
        percentile_cont(0.1) WITHIN GROUP (ORDER BY latency_ms) AS q10_ms,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) AS q50_ms,
        percentile_cont(0.9) WITHIN GROUP (ORDER BY latency_ms) AS q90_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms) AS q95_ms,
        percentile_cont(0.96) WITHIN GROUP (ORDER BY latency_ms) AS q96_ms,
        percentile_cont(0.97) WITHIN GROUP (ORDER BY latency_ms) AS q97_ms,
        percentile_cont(0.99) WITHIN GROUP (ORDER BY latency_ms) AS q99_ms,
        percentile_cont(0.999) WITHIN GROUP (ORDER BY latency_ms) AS q999_ms
FROM transfers
GROUP BY local_port, arm
ORDER BY local_port NULLS LAST, arm;

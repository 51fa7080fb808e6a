-- Table 3: mean and quantiles of the latency by arm, and what is gained against the base.
WITH by_arm AS (
    SELECT
        arm,
        count(*) AS transfers,
        avg(latency_ms) AS mean_ms,
        percentile_cont(0.1) WITHIN GROUP (ORDER BY latency_ms) AS q10_ms,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY latency_ms) AS q50_ms,
        percentile_cont(0.9) WITHIN GROUP (ORDER BY latency_ms) AS q90_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY latency_ms) AS q95_ms,
        percentile_cont(0.99) WITHIN GROUP (ORDER BY latency_ms) AS q99_ms,
        percentile_cont(0.999) WITHIN GROUP (ORDER BY latency_ms) AS q999_ms
    FROM transfers
    GROUP BY arm
)
SELECT
    a.*,
    100 * (b.mean_ms - a.mean_ms) / b.mean_ms AS mean_gain_pct,
    100 * (b.q10_ms - a.q10_ms) / b.q10_ms AS q10_gain_pct,
    100 * (b.q50_ms - a.q50_ms) / b.q50_ms AS q50_gain_pct,
    100 * (b.q90_ms - a.q90_ms) / b.q90_ms AS q90_gain_pct,
    100 * (b.q95_ms - a.q95_ms) / b.q95_ms AS q95_gain_pct,
    100 * (b.q99_ms - a.q99_ms) / b.q99_ms AS q99_gain_pct,
    100 * (b.q999_ms - a.q999_ms) / b.q999_ms AS q999_gain_pct
FROM by_arm AS a
CROSS JOIN by_arm AS b
WHERE b.arm = (SELECT arm FROM base)
ORDER BY a.arm;

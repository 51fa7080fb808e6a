-- Figures 5, 6 and 7: the mean latency in buckets of RTT, bandwidth, BDP and response size, and their shares.
-- A bucket is named by its upper end; 1e300 is above all. slow_bandwidth: the slower half of the prefixes, in four
-- parts of as many prefixes each.
WITH parts AS (
    SELECT
        percentile_cont(0.125) WITHIN GROUP (ORDER BY kbit_per_s) AS first_end,
        percentile_cont(0.25) WITHIN GROUP (ORDER BY kbit_per_s) AS second_end,
        percentile_cont(0.375) WITHIN GROUP (ORDER BY kbit_per_s) AS third_end,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY kbit_per_s) AS fourth_end
    FROM bandwidths
),
cut AS (
    SELECT
        arm, latency_ms, 'rtt' AS what,
        CASE
            WHEN rtt_ms <= 20 THEN 20 WHEN rtt_ms <= 50 THEN 50 WHEN rtt_ms <= 100 THEN 100
            WHEN rtt_ms <= 200 THEN 200 WHEN rtt_ms <= 500 THEN 500 ELSE 1e300
        END AS up_to
    FROM transfers WHERE rtt_ms IS NOT NULL
    UNION ALL
    SELECT
        arm, latency_ms, 'bandwidth' AS what,
        CASE
            WHEN kbit_per_s <= 56 THEN 56 WHEN kbit_per_s <= 256 THEN 256 WHEN kbit_per_s <= 512 THEN 512
            WHEN kbit_per_s <= 1000 THEN 1000 WHEN kbit_per_s <= 2000 THEN 2000
            WHEN kbit_per_s <= 3000 THEN 3000 WHEN kbit_per_s <= 5000 THEN 5000 ELSE 1e300
        END AS up_to
    FROM transfers WHERE kbit_per_s IS NOT NULL
    UNION ALL
    SELECT
        arm, latency_ms, 'bdp' AS what,
        CASE
            WHEN bdp_bytes <= 1000 THEN 1000 WHEN bdp_bytes <= 5000 THEN 5000
            WHEN bdp_bytes <= 10000 THEN 10000 WHEN bdp_bytes <= 50000 THEN 50000
            WHEN bdp_bytes <= 100000 THEN 100000 WHEN bdp_bytes <= 200000 THEN 200000 ELSE 1e300
        END AS up_to
    FROM transfers WHERE bdp_bytes IS NOT NULL
    UNION ALL
    SELECT
        arm, latency_ms, 'slow_bandwidth' AS what,
        CASE
            WHEN kbit_per_s <= first_end THEN first_end WHEN kbit_per_s <= second_end THEN second_end
            WHEN kbit_per_s <= third_end THEN third_end WHEN kbit_per_s <= fourth_end THEN fourth_end
            ELSE 1e300
        END AS up_to
    FROM transfers CROSS JOIN parts WHERE kbit_per_s IS NOT NULL
    UNION ALL
    SELECT
        arm, latency_ms, 'size' AS what,
        CASE
            WHEN segments <= 3 THEN 3 WHEN segments <= 4 THEN 4 WHEN segments <= 7 THEN 7
            WHEN segments <= 10 THEN 10 WHEN segments <= 15 THEN 15 WHEN segments <= 20 THEN 20
            WHEN segments <= 30 THEN 30 WHEN segments <= 50 THEN 50 ELSE 1e300
        END AS up_to
    FROM transfers
),
by_arm AS (
    SELECT what, up_to, arm, count(*) AS transfers, avg(latency_ms) AS mean_ms
    FROM cut
    GROUP BY what, up_to, arm
)
SELECT
    a.what,
    a.up_to,
    a.arm,
    a.transfers,
    1e2 * a.transfers / sum(a.transfers) OVER (PARTITION BY a.what, a.arm) AS share_of_arm_pct,
    a.mean_ms,
    b.mean_ms - a.mean_ms AS gain_ms,
    100 * (b.mean_ms - a.mean_ms) / b.mean_ms AS gain_pct
FROM by_arm AS a
LEFT JOIN by_arm AS b ON b.what = a.what AND b.up_to = a.up_to AND b.arm = (SELECT arm FROM base)
ORDER BY a.what, a.up_to, a.arm;

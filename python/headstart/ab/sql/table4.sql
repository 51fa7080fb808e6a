-- Table 4: the same for slow paths: the lowest bucket of bandwidth with 100 transfers of each arm.
WITH cut AS (
    SELECT
        t.*,
        CASE
            WHEN kbit_per_s <= 56 THEN 56 WHEN kbit_per_s <= 256 THEN 256 WHEN kbit_per_s <= 512 THEN 512
            WHEN kbit_per_s <= 1000 THEN 1000 WHEN kbit_per_s <= 2000 THEN 2000
            WHEN kbit_per_s <= 3000 THEN 3000 WHEN kbit_per_s <= 5000 THEN 5000 ELSE 1000000000
        END AS up_to_kbit_per_s
    FROM transfers AS t
    WHERE kbit_per_s IS NOT NULL
),
counted AS (
    SELECT up_to_kbit_per_s, arm, count(*) AS many FROM cut GROUP BY up_to_kbit_per_s, arm
),
slowest AS (
    SELECT o.arm, min(o.up_to_kbit_per_s) AS up_to_kbit_per_s
    FROM counted AS o
    JOIN counted AS b ON b.up_to_kbit_per_s = o.up_to_kbit_per_s AND b.arm = (SELECT arm FROM base)
    WHERE o.many >= 100 AND b.many >= 100 AND o.arm <> b.arm
    GROUP BY o.arm
)
SELECT
    s.arm AS other,
    s.up_to_kbit_per_s,
    c.arm,
    count(*) AS transfers,
        percentile_cont(0.1) WITHIN GROUP (ORDER BY c.latency_ms) AS q10_ms,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY c.latency_ms) AS q50_ms,
        percentile_cont(0.9) WITHIN GROUP (ORDER BY c.latency_ms) AS q90_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY c.latency_ms) AS q95_ms,
        percentile_cont(0.99) WITHIN GROUP (ORDER BY c.latency_ms) AS q99_ms
FROM slowest AS s
JOIN cut AS c ON c.up_to_kbit_per_s = s.up_to_kbit_per_s
WHERE c.arm = s.arm OR c.arm = (SELECT arm FROM base)
GROUP BY s.arm, s.up_to_kbit_per_s, c.arm
ORDER BY other, arm;

-- Table 5: quantiles of the prefixes' mean latencies. Where most prefixes had both arms, of those alone.
WITH means AS (
    SELECT arm, prefix, avg(latency_ms) AS mean_ms FROM transfers GROUP BY arm, prefix
),
of_base AS (SELECT prefix, mean_ms FROM means WHERE arm = (SELECT arm FROM base)),
pairs AS (
    SELECT
        o.arm,
        2 * count(b.prefix) > count(*) + (SELECT count(*) FROM of_base) - count(b.prefix) AS crossed
    FROM means AS o
    LEFT JOIN of_base AS b ON b.prefix = o.prefix
    WHERE o.arm <> (SELECT arm FROM base)
    GROUP BY o.arm
),
chosen AS (
    SELECT p.arm AS other, o.arm, o.mean_ms
    FROM pairs AS p
    JOIN means AS o ON o.arm = p.arm
    LEFT JOIN of_base AS b ON b.prefix = o.prefix
    WHERE NOT p.crossed OR b.prefix IS NOT NULL
    UNION ALL
    SELECT p.arm AS other, (SELECT arm FROM base) AS arm, b.mean_ms
    FROM pairs AS p
    CROSS JOIN of_base AS b
    LEFT JOIN means AS o ON o.arm = p.arm AND o.prefix = b.prefix
    WHERE NOT p.crossed OR o.prefix IS NOT NULL
)
SELECT
    other,
    arm,
    count(*) AS prefixes,
        percentile_cont(0.1) WITHIN GROUP (ORDER BY mean_ms) AS q10_ms,
        percentile_cont(0.5) WITHIN GROUP (ORDER BY mean_ms) AS q50_ms,
        percentile_cont(0.9) WITHIN GROUP (ORDER BY mean_ms) AS q90_ms,
        percentile_cont(0.95) WITHIN GROUP (ORDER BY mean_ms) AS q95_ms,
        percentile_cont(0.99) WITHIN GROUP (ORDER BY mean_ms) AS q99_ms,
        percentile_cont(0.999) WITHIN GROUP (ORDER BY mean_ms) AS q999_ms
FROM chosen
GROUP BY other, arm
ORDER BY other, arm;

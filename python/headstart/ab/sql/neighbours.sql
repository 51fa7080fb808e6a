-- Fairness: the base's transfers that began while another of their prefix was under way, by the arm of that one.
WITH beside AS (
    SELECT
        arm,
        latency_ms,
        segments,
        start_us,
        lag(arm) OVER (PARTITION BY prefix ORDER BY start_us) AS neighbour,
        lag(start_us + latency_ms * 1000) OVER (PARTITION BY prefix ORDER BY start_us) AS neighbour_ends_us
    FROM transfers
)
SELECT
    neighbour,
    count(*) AS transfers,
    avg(latency_ms) AS mean_ms,
    sum(CASE WHEN segments <= 3 THEN 1 ELSE 0 END) AS short_transfers,
    avg(CASE WHEN segments <= 3 THEN latency_ms END) AS short_mean_ms
FROM beside
WHERE neighbour_ends_us > start_us AND arm = (SELECT arm FROM base)
GROUP BY neighbour
ORDER BY neighbour;

-- The entries in some files of a history, of a single testbed unless the testbed is null. The testbed is the name of a
-- file's own folder. Folders above may have such names, too, and Hive's own reading would take them for columns.
-- A column of another type than ours is an error when its values are inserted.
CREATE TEMP TABLE found AS SELECT *, '' AS file, '' AS testbed, true AS is_usable FROM all_columns;

INSERT INTO found BY NAME SELECT *, coalesce(
    -- Rows that a trend can be computed from: a value or a list may be null, but nothing in a list.
    test IS NOT NULL AND quantity IS NOT NULL AND outcome IS NOT NULL AND unit IS NOT NULL
    AND coalesce(value, 0) >= 0
    AND started BETWEEN '0002-01-01' AND '9998-12-31'
    AND coalesce(run_started, started) BETWEEN '0002-01-01' AND '9998-12-31'
    AND list_bool_and([isfinite(coalesce(number, 0)) FOR number IN
        [value, lower_bound, upper_bound, seconds, frame_size_bytes, unsent_share, most, aggregate_factor]])
    AND coalesce(aggregate_factor, 1) > 0
    AND coalesce(resolution, 0) >= 0 AND coalesce(resolution, 0) < 1
    AND len(coalesce(doubts, [])) = list_count(coalesce(doubts, []))
    AND len(coalesce(tags, [])) = list_count(coalesce(tags, []))
    AND coalesce(list_bool_and([point.load || point.direction IS NOT NULL
        AND isfinite(coalesce(point.p50_us, 0) + coalesce(point.p90_us, 0) + coalesce(point.p99_us, 0)
            + coalesce(point.most_us, 0)) FOR point IN latency]), true)
    AND coalesce(list_bool_and([reading.quantity || reading.place || reading.unit IS NOT NULL
        AND coalesce(isfinite(reading.value), false) FOR reading IN readings]), true),
    false
) AS is_usable FROM (
    SELECT {names}, CASE WHEN $readings THEN readings END AS readings, filename AS file,
        url_decode(split_part(split_part(filename, '/', -3), '=', 2)) AS testbed
    FROM (
        FROM read_parquet($files, union_by_name = true, hive_partitioning = false, filename = true)
        UNION ALL BY NAME FROM all_columns
    )
)
WHERE $testbed IS NULL OR testbed = $testbed;

SELECT DISTINCT file FROM found WHERE NOT is_usable ORDER BY file;

-- How many results of each testbed are dated in the future, and the time of the first.
SELECT testbed, count(DISTINCT (test, started)), strftime(min(started), '%Y-%m-%d %H:%M')
FROM found WHERE is_usable AND started > getvariable('latest') GROUP BY testbed ORDER BY testbed;

-- The entries of files that can be used as a whole. A run that was added before it was resumed, and again afterwards,
-- has entries in two files: each entry counts once.
SELECT * EXCLUDE (file, is_usable) FROM found
WHERE file NOT IN (SELECT file FROM found WHERE NOT is_usable) AND started <= getvariable('latest')
QUALIFY row_number() OVER (
    PARTITION BY testbed, test, quantity, started
    ORDER BY len(doubts) DESC, len(readings) DESC NULLS LAST, run_started NULLS LAST, run
) = 1
ORDER BY testbed, test, quantity, started

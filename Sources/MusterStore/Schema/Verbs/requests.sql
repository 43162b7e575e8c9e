-- Inserts or locks the row of a request: every transaction of the request begins with this, and keeps the row locked until it ends. Returns what an
-- earlier transaction of the request did and is not to be done again.
CREATE FUNCTION claim_request(p_key text, p_about text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    r requests;
BEGIN
    LOOP
        SELECT * INTO r FROM requests WHERE key = p_key FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO requests (key, about) VALUES (p_key, p_about) ON CONFLICT (key) DO NOTHING RETURNING * INTO r;
        EXIT WHEN FOUND;
    END LOOP;
    IF r.about <> p_about THEN
        RAISE unique_violation USING CONSTRAINT = 'requests_about', MESSAGE = 'another request has had this key';
    ELSIF r.status IS NOT NULL THEN
        RAISE unique_violation USING CONSTRAINT = 'requests_answered', MESSAGE = 'the request has been answered';
    END IF;
    RETURN r.effect;
END
$$;

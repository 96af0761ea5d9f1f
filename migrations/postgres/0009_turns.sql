-- Work that only one server does at a time: whoever does it holds the row's lock.
CREATE TABLE turns (
    work text COLLATE "C" PRIMARY KEY
);
INSERT INTO turns (work) VALUES ('sweep');

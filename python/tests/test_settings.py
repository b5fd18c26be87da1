"""Settings of TileDB are taken as a dictionary or a configuration of TileDB-Py; what is secret stays in the process."""

import logging
import pickle

import numpy as np
import pytest
from conftest import tiledb, write_dense

import tilefs
from tilefs import _anndata, _options
from tilefs.fs import TilefsFileSystem

KEY = "0123456789abcdeF0123456789abcdeF"
SECRETS = {"vfs.s3.aws_access_key_id": "hunter1", "vfs.s3.aws_secret_access_key": "hunter2", "vfs.s3.aws_session_token": "hunter3", "vfs.azure.storage_account_key": "hunter4"}
FORMS = [dict, tiledb.Config]


@pytest.mark.parametrize("form", FORMS)
def test_secrets_are_taken_and_not_shown(demo, form):
    array = tilefs.open(demo, config=form({**SECRETS, "vfs.s3.region": "eu-west-1"}))
    assert array["temp"][0, 0] == 20
    files = TilefsFileSystem(demo, config=form(SECRETS))
    for shown in (pickle.dumps(array), pickle.dumps(array["temp"]), pickle.dumps(files), repr(array).encode(), repr(array.__reduce__()).encode()):
        assert b"hunter" not in shown
    assert b"eu-west-1" in pickle.dumps(array)
    assert pickle.loads(pickle.dumps(array))["temp"][0, 0] == 20


@pytest.mark.parametrize("form", FORMS)
def test_a_key_of_tiledb_opens_an_encrypted_array(tmp_path, form):
    values = np.arange(12, dtype="i4").reshape(3, 4)
    path = write_dense(tmp_path / "a", values, key=KEY)
    array = tilefs.open(path, config=form({"sm.encryption_type": "AES_256_GCM", "sm.encryption_key": KEY}))
    assert np.array_equal(array["a"][:], values)
    assert KEY.encode() not in pickle.dumps(array) and KEY not in repr(array.__reduce__())
    with pytest.raises(tilefs.EncryptionError) as error:
        tilefs.open(path, config=form({"sm.encryption_key": KEY[::-1]}))
    assert KEY[::-1] not in str(error.value)


@pytest.mark.parametrize("form", FORMS)
def test_tuning_makes_no_difference_and_is_noted(demo, form, caplog):
    tuning = {"sm.io_concurrency_level": "3", "py.init_buffer_bytes": "1000", "config.logging_level": "1", "vfs.s3.multipart_part_size": "10485760"}
    with caplog.at_level(logging.DEBUG, "tilefs"):
        assert tilefs.open(demo, config=form(tuning))["temp"][0, 0] == 20
    assert sorted(record.args[0] for record in caplog.records if record.name == "tilefs") == sorted(tuning)
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG and record.name == "tilefs"]


def test_settings_with_a_counterpart_mean_it():
    made = {}
    for name, value in {"sm.mem.total_budget": "1000", "sm.compute_concurrency_level": "100000", "ssl.verify": "false"}.items():
        _options._set(made, name, value)
    assert made == {"cache_size": 1000, "threads": 65535, "settings": [("vfs.s3.verify_ssl", "false")]}
    # What is given as an option wins.
    made = {"threads": 2}
    _options._set(made, "sm.compute_concurrency_level", "8")
    assert made == {"threads": 2}


@pytest.mark.parametrize(
    "config, message",
    [
        ({"vfs.s3.endpoint_overide": "hunter5"}, "did you mean vfs.s3.endpoint_override"),
        ({"vfs.s3.aws_secret_acess_key": "hunter5"}, "did you mean vfs.s3.aws_secret_access_key"),
        ({"vfs.s3.scheme": "ftp"}, "vfs.s3.scheme must be http or https"),
        ({"sm.mem.total_budget": "much"}, "sm.mem.total_budget must be a number"),
    ],
)
def test_wrong_settings_are_named(demo, config, message):
    with pytest.raises(tilefs.UsageError, match=message) as error:
        tilefs.open(demo, config=config)
    assert "hunter5" not in str(error.value)


def test_members_are_backed_with_secrets_that_no_pickle_has(demo, tmp_path):
    tiledb.Group.create(str(tmp_path / "group"))
    tiledb.Group.create(str(tmp_path / "group/ms"))
    with tiledb.Group(str(tmp_path / "group"), "w") as group:
        group.add("ms", "ms", relative=True)
    config = {"vfs.s3.aws_access_key_id": "name", "vfs.s3.aws_secret_access_key": "hidden", "vfs.s3.region": "eu"}
    opened = tilefs.open(tmp_path / "group", config=config)
    for one in (opened, opened["ms"]):
        assert _anndata._options_of(one)["config"] == config
        stored = pickle.dumps(one)
        assert b"hidden" not in stored and _anndata._options_of(pickle.loads(stored))["config"] == {"vfs.s3.region": "eu"}

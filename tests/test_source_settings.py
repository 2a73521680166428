"""What a source says of its payment API: references alone, faults together, nothing shown."""

import pytest

from receiver.settings import Settings, SettingsError

SOURCE = """
[sources.shop]
provider = "razorpay"
secrets = ["env:HOOK"]
{more}
"""


def read(tmp_path, more, **environ):
    """The source shop with ``more`` in its table."""
    path = tmp_path / "sources.toml"
    path.write_text(SOURCE.format(more=more))
    environ = {"DATABASE_URL": "postgresql://x/y", "RECEIVER_SOURCES": str(path), "HOOK": "h", **environ}
    return Settings.from_env(environ).sources["shop"]


def test_credentials_are_named_and_never_shown(tmp_path):
    """They come from the environment; what is missing there is no fault of the start."""
    source = read(tmp_path, 'api = { key_id = "env:RZP_ID", key_secret = "env:RZP_SECRET" }', RZP_ID="id_1")

    assert {name: secret.value for name, secret in source.api.items()} == {"key_id": "id_1"}
    assert source.missing_api == ("env:RZP_SECRET",)
    assert "id_1" not in repr(source)


@pytest.mark.parametrize("url", ["https://abc.api.checkout.com", "http://127.0.0.1:8000/demo-api"])
def test_an_address_of_ones_own_is_taken(tmp_path, url):
    """https anywhere, plain http on this machine."""
    assert read(tmp_path, f'api_url = "{url}"').api_url == url


@pytest.mark.parametrize(
    "more,fault",
    [
        ('api = { key = "sk_live_x" }', 'is named as "env:NAME"'),
        ("api = { key = 1 }", "api must be a table"),
        ('api = "env:KEY"', "api must be a table"),
        ('api_url = "http://api.example.com"', "api_url must be an https URL"),
        ('api_url = "https://u:p@api.example.com"', "api_url must be an https URL"),
        ('api_url = "https://[broken"', "api_url must be an https URL"),
        ('api_url = "https://api.example.com/?k=1"', "api_url must be an https URL"),
        ("api_url = 7", "api_url must be an https URL"),
        ('rotate_by = "2027-03-31"', "rotate_by must be a day"),
        ("rotate_by = 2027-03-31T12:00:00Z", "rotate_by must be a day"),
    ],
)
def test_a_flawed_setting_is_a_fault_of_the_start(tmp_path, more, fault):
    """Named by the source, without the text that may be the secret."""
    with pytest.raises(SettingsError, match=fault) as error:
        read(tmp_path, more)

    assert "sk_live_x" not in str(error.value)

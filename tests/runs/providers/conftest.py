from tests.stub_server import stub_process, stub_server

__all__ = ["stub_process", "stub_server"]

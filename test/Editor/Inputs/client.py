"""Speaks the Language Server Protocol with `accel-opt lsp` over pipes."""
import json
import subprocess


class Client:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.count = 0
        self.notes = []

    def raw(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message):
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))

    def notify(self, method, params):
        self.send({"method": method, "params": params})

    def read(self):
        length = 0
        while (line := self.process.stdout.readline().strip()):
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert length, "the server has ended"
        return json.loads(self.process.stdout.read(length))

    def call(self, method, params):
        """The whole answer; notifications in between are kept in `notes`."""
        self.count += 1
        self.send({"method": method, "params": params, "id": self.count})
        while True:
            message = self.read()
            if message.get("id") == self.count:
                return message
            self.notes.append(message)

    def result(self, method, params):
        answer = self.call(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def diagnostics(self):
        while True:
            message = self.notes.pop(0) if self.notes else self.read()
            if message.get("method") == "textDocument/publishDiagnostics":
                return message["params"]["diagnostics"]

    def end(self):
        self.result("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(timeout=60)

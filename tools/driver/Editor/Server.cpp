//===- Server.cpp - accel-opt lsp -----------------------------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "tools/driver/Editor/Server.h"

#include "tools/driver/Editor/Buffer.h"
#include "tools/driver/Editor/Input.h"
#include "tools/driver/Editor/Keys.h"

#include "llvm/Support/LSP/Protocol.h"

namespace accel {
namespace {

namespace lsp = llvm::lsp;
namespace json = llvm::json;

/// initializationOptions, or the settings that changed: {"accelOpt": {"model":
/// ..., "target": ...}}, with or without the section.
struct Settings {
  std::optional<FirstLine> given;
};

bool fromJSON(const json::Value &value, Settings &result, json::Path) {
  const json::Object *o = value.getAsObject();
  for (const char *word : {"initializationOptions", "settings", "accelOpt"})
    if (const json::Object *inner = o ? o->getObject(word) : nullptr)
      o = inner;
  if (o && (o->get("model") || o->get("target")))
    result.given = {o->getString("model").value_or("").str(),
                    o->getString("target").value_or("").str()};
  return true;
}

class Server {
public:
  Server(lsp::MessageHandler &handler, FirstLine settings)
      : settings(std::move(settings)) {
    publish = handler.outgoingNotification<lsp::PublishDiagnosticsParams>(
        "textDocument/publishDiagnostics");
    handler.method("initialize", this, &Server::initialize);
    handler.notification("initialized", this, &Server::ignore);
    handler.method("shutdown", this, &Server::shutDown);
    handler.notification("textDocument/didOpen", this, &Server::opened);
    handler.notification("textDocument/didChange", this, &Server::changed);
    handler.notification("textDocument/didClose", this, &Server::closed);
    handler.notification("workspace/didChangeConfiguration", this,
                         &Server::configured);
    handler.method("textDocument/hover", this, &Server::hover);
    handler.method("textDocument/completion", this, &Server::complete);
    handler.method("textDocument/codeAction", this, &Server::codeActions);
    handler.method("textDocument/inlayHint", this, &Server::inlayHints);
  }
  bool wasShutDown = false;

private:
  struct Open {
    lsp::URIForFile uri;
    int64_t version = 0;
    std::unique_ptr<Buffer> buffer;
  };

  void initialize(const Settings &given, lsp::Callback<json::Value> reply) {
    if (given.given)
      settings = *given.given;
    reply(json::Object{
        {"serverInfo",
         json::Object{{"name", "accel-opt"}, {"version", ACCEL_VERSION}}},
        {"capabilities",
         json::Object{
             {"textDocumentSync",
              json::Object{{"openClose", true}, {"change", 1}}}, // whole texts
             {"hoverProvider", true},
             {"completionProvider",
              json::Object{{"triggerCharacters", json::Array{":", " "}}}},
             {"codeActionProvider",
              json::Object{{"codeActionKinds",
                            json::Array{"quickfix", "source.fixAll"}}}},
             {"inlayHintProvider", true}}}});
  }

  void ignore(const lsp::NoParams &) {}

  void shutDown(const lsp::NoParams &, lsp::Callback<std::nullptr_t> reply) {
    wasShutDown = true;
    reply(nullptr);
  }

  void opened(const lsp::DidOpenTextDocumentParams &p) {
    Open &open = files[p.textDocument.uri.file().str()];
    open.uri = p.textDocument.uri;
    take(open, p.textDocument.text, p.textDocument.version);
  }

  void changed(const lsp::DidChangeTextDocumentParams &p) {
    const auto at = files.find(p.textDocument.uri.file().str());
    if (at == files.end())
      return;
    std::string text = at->second.buffer->text();
    for (const lsp::TextDocumentContentChangeEvent &change : p.contentChanges)
      if (llvm::failed(change.applyTo(text)))
        return;
    take(at->second, std::move(text), p.textDocument.version);
  }

  void closed(const lsp::DidCloseTextDocumentParams &p) {
    const auto at = files.find(p.textDocument.uri.file().str());
    if (at == files.end())
      return;
    publish({at->second.uri, at->second.version});
    files.erase(at);
  }

  void configured(const Settings &given) {
    if (!given.given)
      return;
    settings = *given.given;
    for (auto &[path, open] : files)
      take(open, open.buffer->text(), open.version);
  }

  void take(Open &open, std::string text, int64_t version) {
    open.version = version;
    open.buffer = std::make_unique<Buffer>(open.uri.file().str(),
                                           std::move(text), settings);
    lsp::PublishDiagnosticsParams params(open.uri, version);
    for (const Diagnostic &d : open.buffer->findings().sorted())
      if (d.file == open.uri.file())
        params.diagnostics.push_back(converted(d, open.buffer->text()));
    publish(params);
  }

  static lsp::Range rangeOf(const SourceRange &at, const std::string &text) {
    auto place = [&](int line, int column) {
      line = std::max(line, 1) - 1;
      return lsp::Position(
          line, unitsOf(lineOf(text, line), std::max(column, 1) - 1));
    };
    const lsp::Position begin = place(at.line, at.column);
    const lsp::Position end =
        at.endColumn ? place(at.endLine ? at.endLine : at.line, at.endColumn)
                     : begin;
    return {begin, end};
  }

  static lsp::Diagnostic converted(const Diagnostic &d,
                                   const std::string &text) {
    lsp::Diagnostic out;
    out.range = rangeOf({d.line, d.column, d.endLine, d.endColumn}, text);
    out.severity = d.severity == Severity::Error
                       ? lsp::DiagnosticSeverity::Error
                   : d.severity == Severity::Warning
                       ? lsp::DiagnosticSeverity::Warning
                       : lsp::DiagnosticSeverity::Information;
    out.source = "accel-opt";
    out.category = d.code;
    out.message = d.message + " [" + d.code + "]";
    if (!d.hint.empty())
      out.message += "\n" + d.hint;
    return out;
  }

  /// A short edit is its own title.
  static std::string titleOf(const Diagnostic &d) {
    const std::string &text = d.fix.front().text;
    if (d.fix.size() == 1 && !text.empty() && text.size() <= 60 &&
        text.find('\n') == std::string::npos)
      return "Write " + text;
    return d.hint.empty() ? "Repair: " + d.message : d.hint;
  }

  Buffer *find(const lsp::URIForFile &uri) {
    const auto at = files.find(uri.file().str());
    return at == files.end() ? nullptr : at->second.buffer.get();
  }

  void hover(const lsp::TextDocumentPositionParams &p,
             lsp::Callback<std::optional<lsp::Hover>> reply) {
    const Buffer *buffer = find(p.textDocument.uri);
    if (!buffer)
      return reply(std::nullopt);
    const Place place =
        placeAt(buffer->text(), p.position.line, p.position.character);
    if (place.key.empty())
      return reply(std::nullopt);
    const std::string path = place.path();
    std::string body = descriptionOf(place, buffer->text());
    if (const EffectiveValue *value = buffer->effective(path)) {
      body += (body.empty() ? "" : "\n\n") +
              ("**Effective:** `" + value->effective + "`");
      if (!value->why.empty())
        body += ": " + value->why;
    }
    if (body.empty())
      return reply(std::nullopt);
    lsp::Hover hover(lsp::Range(p.position));
    hover.range.reset();
    hover.contents.value = "`" + path + "`\n\n" + body;
    reply(hover);
  }

  void complete(const lsp::CompletionParams &p,
                lsp::Callback<lsp::CompletionList> reply) {
    lsp::CompletionList list;
    if (const Buffer *buffer = find(p.textDocument.uri)) {
      const Place place =
          placeAt(buffer->text(), p.position.line, p.position.character);
      for (const Choice &choice : choicesAt(place, buffer->text())) {
        lsp::CompletionItem item(
            choice.text, place.inValue ? lsp::CompletionItemKind::Value
                                       : lsp::CompletionItemKind::Property);
        item.detail = choice.help;
        if (!place.inValue && place.key.empty())
          item.insertText = choice.text + (choice.isSection ? ":" : ": ");
        list.items.push_back(std::move(item));
      }
    }
    reply(std::move(list));
  }

  void codeActions(const lsp::CodeActionParams &p,
                   lsp::Callback<json::Value> reply) {
    json::Array actions;
    const Buffer *buffer = find(p.textDocument.uri);
    if (!buffer)
      return reply(std::move(actions));
    const std::string file = p.textDocument.uri.file().str();
    const std::string uri = p.textDocument.uri.uri().str();
    bool repairs = false;
    for (const Diagnostic &d : buffer->findings().sorted()) {
      if (d.file != file || d.fix.empty())
        continue;
      repairs = true;
      const lsp::Diagnostic said = converted(d, buffer->text());
      if (said.range.end.line < p.range.start.line ||
          said.range.start.line > p.range.end.line)
        continue;
      lsp::CodeAction action;
      action.title = titleOf(d);
      action.kind = "quickfix";
      action.isPreferred = true;
      action.diagnostics = {said};
      action.edit.emplace();
      for (const TextEdit &edit : d.fix)
        action.edit->changes[uri].push_back(
            {rangeOf(buffer->findings().rangeOf(file, edit.begin, edit.end),
                     buffer->text()),
             edit.text});
      actions.push_back(toJSON(action));
    }
    if (auto text = repairs ? buffer->repaired() : std::nullopt) {
      lsp::CodeAction all;
      all.title = "Fix all that accel-opt can repair";
      all.kind = "source.fixAll";
      all.edit.emplace();
      const auto lines = static_cast<int>(
          std::count(buffer->text().begin(), buffer->text().end(), '\n'));
      all.edit->changes[uri].push_back(
          {lsp::Range({0, 0}, {lines + 1, 0}), *text});
      actions.push_back(toJSON(all));
    }
    reply(std::move(actions));
  }

  void inlayHints(const lsp::InlayHintsParams &p,
                  lsp::Callback<std::vector<lsp::InlayHint>> reply) {
    std::vector<lsp::InlayHint> hints;
    Buffer *buffer = find(p.textDocument.uri);
    int line = 0;
    // Beside the first line that says something.
    for (; buffer; ++line) {
      const std::string_view here = lineOf(buffer->text(), line);
      if (!here.empty() && here.front() != '#' && here != "---")
        break;
      if (line > 1000)
        buffer = nullptr;
    }
    if (buffer && !buffer->figures().empty()) {
      const std::string_view here = lineOf(buffer->text(), line);
      lsp::InlayHint hint(lsp::InlayHintKind::Type,
                          {line, unitsOf(here, static_cast<int>(here.size()))});
      hint.label = buffer->figures();
      hint.paddingLeft = true;
      hints.push_back(std::move(hint));
    }
    reply(std::move(hints));
  }

  FirstLine settings;
  std::map<std::string, Open> files;
  lsp::OutgoingNotification<lsp::PublishDiagnosticsParams> publish;
};

} // namespace

bool serveEditor(std::FILE *in, FirstLine settings) {
  lsp::Logger::setLogLevel(lsp::Logger::Level::Error);
  lsp::JSONTransport transport(std::make_unique<CheckedInput>(in),
                               llvm::outs());
  lsp::MessageHandler handler(transport);
  Server server(handler, std::move(settings));
  llvm::consumeError(transport.run(handler));
  return server.wasShutDown;
}

} // namespace accel

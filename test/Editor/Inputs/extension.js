// Activates the extension of editors/vscode under Node, with stand-ins for the
// two modules that VS Code and npm would give it: `vscode`, whose settings are
// the defaults of package.json, and a LanguageClient that starts the command it
// is given and speaks the protocol.
//
//   node extension.js FOLDER-OF-EXTENSION SCRATCH MODULE.mlir
'use strict';
const assert = require('assert');
const child = require('child_process');
const fs = require('fs');
const Module = require('module');
const path = require('path');
const {pathToFileURL} = require('url');

const [folder, scratch, mlir] = process.argv.slice(2);
const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package.json')));
const declared = manifest.contributes.configuration.properties;
const settings = Object.fromEntries(Object.entries(declared).map(
    ([name, {default: value}]) => [name.replace('accelOpt.', ''), value]));
const read = new Set(), errors = [], clients = [];

const vscode = {
  workspace: {
    getConfiguration(section) {
      assert.strictEqual(section, 'accelOpt');
      const get = name => {
        assert(name in settings, `package.json declares no accelOpt.${name}`);
        read.add(name);
        return settings[name];
      };
      return new Proxy({get}, {
        get: (own, name) => name in own ? own[name] : get(name)});
    },
  },
  window: {showErrorMessage: async text => { errors.push(text); }},
};

// As VS Code matches a document: by scheme, language and glob.
function selects({language, scheme, pattern}, file, languageId) {
  const glob = !pattern ? '.*' : pattern
      .replace(/[.+^$()|[\]\\]/g, '\\$&').replace(/\*\*\//g, '(.*/)?')
      .replace(/(?<!\.)\*/g, '[^/]*')
      .replace(/\{([^}]*)\}/g, (_, all) => `(${all.replace(/,/g, '|')})`);
  return scheme === 'file' && language === languageId &&
      new RegExp(`^${glob}$`).test(file);
}

class LanguageClient {
  constructor(id, name, {command, args}, {documentSelector, ...options}) {
    assert(id && name && documentSelector.length);
    Object.assign(this, {command, args, documentSelector, options});
    Object.assign(this, {count: 0, waiting: new Map(), published: new Map()});
    this.buffer = Buffer.alloc(0);
    clients.push(this);
  }
  send(message) {
    const text = Buffer.from(JSON.stringify({jsonrpc: '2.0', ...message}));
    this.process.stdin.write(`Content-Length: ${text.length}\r\n\r\n`);
    this.process.stdin.write(text);
  }
  call(method, params) {
    const id = ++this.count;
    this.send({id, method, params});
    return new Promise(resolve => this.waiting.set(id, resolve));
  }
  receive(chunk) {
    this.buffer = Buffer.concat([this.buffer, chunk]);
    for (;;) {
      const head = this.buffer.indexOf('\r\n\r\n');
      if (head < 0) return;
      const length = Number(/Content-Length: (\d+)/i.exec(this.buffer.subarray(0, head))[1]);
      if (this.buffer.length < head + 4 + length) return;
      const message = JSON.parse(this.buffer.subarray(head + 4, head + 4 + length));
      this.buffer = this.buffer.subarray(head + 4 + length);
      if ('id' in message && this.waiting.has(message.id))
        this.waiting.get(message.id)(message.result);
      else if (message.method === 'textDocument/publishDiagnostics')
        this.published.get(message.params.uri)?.(message.params.diagnostics);
    }
  }
  async start() {
    this.process = child.spawn(this.command, this.args, {stdio: ['pipe', 'pipe', 'inherit']});
    await new Promise((resolve, reject) => this.process.once('spawn', resolve).once('error', reject));
    this.process.stdout.on('data', chunk => this.receive(chunk));
    this.ended = new Promise(resolve => this.process.once('exit', resolve));
    await this.call('initialize', {capabilities: {}, processId: process.pid, rootUri: null,
        initializationOptions: this.options.initializationOptions});
    this.send({method: 'initialized', params: {}});
    const section = this.options.synchronize?.configurationSection;
    if (section)
      this.send({method: 'workspace/didChangeConfiguration', params: {settings: {[section]: settings}}});
  }
  open(file, languageId) {
    const uri = pathToFileURL(file).href;
    const found = new Promise(resolve => this.published.set(uri, resolve));
    this.send({method: 'textDocument/didOpen', params: {textDocument: {
      uri, languageId, version: 1, text: fs.readFileSync(file, 'utf8')}}});
    return found;
  }
  async stop() {
    if (!this.ended) return; // it never started
    await this.call('shutdown', null);
    this.send({method: 'exit'});
    console.log('exit', await this.ended);
  }
}

const load = Module._load;
Module._load = function(name, ...rest) {
  if (name === 'vscode') return vscode;
  if (name === 'vscode-languageclient/node') {
    assert('vscode-languageclient' in manifest.dependencies);
    return {LanguageClient};
  }
  return load.call(this, name, ...rest);
};

async function session() {
  clients.length = 0;
  const extension = path.join(path.resolve(folder), manifest.main);
  delete require.cache[extension];
  const {activate, deactivate} = require(extension);
  await activate();
  return deactivate;
}

async function main() {
  const languages = manifest.contributes.languages.map(l => l.id).concat('yaml');
  for (const event of manifest.activationEvents)
    assert(languages.includes(event.replace('onLanguage:', '')), event);

  let deactivate = await session();
  assert.deepStrictEqual([...read].sort(), Object.keys(settings).sort());
  const serving = (file, language) => clients.filter(
      c => c.documentSelector.some(s => selects(s, file, language)));
  for (const file of ['/a/fsdp.yaml', '/a/b/my_accelerate.yml', '/default_config.yaml', '/x/job.yaml'])
    assert.strictEqual(serving(file, 'yaml').length, 1, file);
  assert.strictEqual(serving('/a/compose.yaml', 'yaml').length, 0);

  const config = path.join(path.resolve(scratch), 'fsdp.yaml');
  fs.writeFileSync(config, 'distributed_type: FSDP\nnum_processes: 8\nmixed_precison: bf16\n');
  for (const {message, range} of await serving(config, 'yaml')[0].open(config, 'yaml'))
    console.log(`line ${range.start.line}: ${message.split('\n')[0]}`);
  console.log('findings:', (await serving(mlir, 'mlir')[0].open(mlir, 'mlir')).length);
  await deactivate();

  settings.path = path.join(scratch, 'none');
  deactivate = await session();
  await deactivate();
  for (const text of errors) console.log(text);
}

main().catch(error => {
  console.error(error);
  process.exit(1);
});

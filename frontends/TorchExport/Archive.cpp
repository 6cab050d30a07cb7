//===- Archive.cpp - The zip that torch.export.save writes ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Archive.h"

#include "frontends/Diagnostics/Diagnostics.h"

#include <algorithm>
#include <zip.h>

namespace accel::torchexport {

namespace {
/// torch writes a few entries per parameter, uncompressed. A zip of more
/// entries, or with a large one that shrinks more than this, is no such file:
/// JSON packs 10 to 50 times smaller.
constexpr zip_int64_t maxEntries = 4'000'000;
constexpr int64_t maxRatio = 200;
constexpr int64_t largeBytes = int64_t(1) << 20;

std::string messageOf(int code) {
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  std::string text = zip_error_strerror(&error);
  zip_error_fini(&error);
  return text;
}
} // namespace

struct Archive::Zip {
  zip_t *handle = nullptr;
  ~Zip() {
    if (handle)
      zip_discard(handle);
  }
};

Archive::Archive() : zip(std::make_unique<Zip>()) {}
Archive::Archive(Archive &&) = default;
Archive &Archive::operator=(Archive &&) = default;
Archive::~Archive() = default;

std::optional<Archive> Archive::open(const std::string &path,
                                     std::string &error) {
  Archive archive;
  int code = 0;
  archive.zip->handle = zip_open(path.c_str(), ZIP_RDONLY, &code);
  if (!archive.zip->handle) {
    error = "no zip archive that can be read: " + messageOf(code);
    return std::nullopt;
  }
  if (!archive.list(error))
    return std::nullopt;
  return archive;
}

std::optional<Archive> Archive::openRange(const std::string &path,
                                          int64_t begin, int64_t bytes,
                                          std::string &error) {
  Archive archive;
  zip_error_t code;
  zip_error_init(&code);
  zip_source_t *source = zip_source_file_create(
      path.c_str(), static_cast<zip_uint64_t>(begin), bytes, &code);
  if (source)
    archive.zip->handle = zip_open_from_source(source, ZIP_RDONLY, &code);
  if (!archive.zip->handle) {
    error = std::string("no zip archive that can be read: ") +
            zip_error_strerror(&code);
    if (source)
      zip_source_free(source);
    zip_error_fini(&code);
    return std::nullopt;
  }
  zip_error_fini(&code);
  if (!archive.list(error))
    return std::nullopt;
  return archive;
}

std::optional<Archive> Archive::openMemory(std::string_view bytes,
                                           std::string &error) {
  Archive archive;
  zip_error_t code;
  zip_error_init(&code);
  zip_source_t *source =
      zip_source_buffer_create(bytes.data(), bytes.size(), 0, &code);
  if (source)
    archive.zip->handle = zip_open_from_source(source, ZIP_RDONLY, &code);
  if (!archive.zip->handle) {
    error = std::string("no zip archive that can be read: ") +
            zip_error_strerror(&code);
    if (source)
      zip_source_free(source);
    zip_error_fini(&code);
    return std::nullopt;
  }
  zip_error_fini(&code);
  if (!archive.list(error))
    return std::nullopt;
  return archive;
}

Archive Archive::ofEntries(std::map<std::string, std::string> entries) {
  Archive archive;
  for (const auto &[name, text] : entries)
    archive.table[name] = {0, int64_t(text.size()), true};
  archive.given = std::move(entries);
  return archive;
}

bool Archive::list(std::string &error) {
  const zip_int64_t count = zip_get_num_entries(zip->handle, 0);
  if (count > maxEntries) {
    error = "the zip has " + std::to_string(count) + " entries, more than " +
            std::to_string(maxEntries);
    return false;
  }
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t stat;
    zip_stat_init(&stat);
    if (zip_stat_index(zip->handle, zip_uint64_t(i), 0, &stat) != 0 ||
        !(stat.valid & ZIP_STAT_NAME) || !(stat.valid & ZIP_STAT_SIZE)) {
      error = "entry " + std::to_string(i) + " of the zip is damaged";
      return false;
    }
    std::string name = stat.name;
    const size_t slash = name.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == name.size())
      continue;
    if (folder.empty())
      folder = name.substr(0, slash);
    if (name.compare(0, slash, folder) != 0)
      continue;
    Entry entry;
    entry.index = uint64_t(i);
    if (stat.size > uint64_t(INT64_MAX)) {
      error = "entry '" + printable(name) + "' of the zip is damaged";
      return false;
    }
    entry.bytes = int64_t(stat.size);
    entry.stored =
        (stat.valid & ZIP_STAT_COMP_METHOD) && stat.comp_method == ZIP_CM_STORE;
    if (!table.emplace(name.substr(slash + 1), entry).second) {
      error = "the zip has two entries '" + printable(name) + "'";
      return false;
    }
  }
  return true;
}

std::optional<std::string> Archive::read(const std::string &name, int64_t limit,
                                         std::string &error) {
  auto found = table.find(name);
  if (found == table.end()) {
    error = "the archive has no entry '" + printable(name) + "'";
    return std::nullopt;
  }
  const Entry &entry = found->second;
  auto fail = [&](const std::string &why) -> std::optional<std::string> {
    error = "entry '" + printable(name) + "' " + why;
    return std::nullopt;
  };
  if (entry.bytes > limit)
    return fail("has " + std::to_string(entry.bytes) + " bytes, and at most " +
                std::to_string(limit) + " are read");
  if (!zip->handle)
    return given.at(name);
  zip_stat_t stat;
  zip_stat_init(&stat);
  if (zip_stat_index(zip->handle, entry.index, 0, &stat) == 0 &&
      (stat.valid & ZIP_STAT_COMP_SIZE) && entry.bytes > largeBytes &&
      uint64_t(entry.bytes / maxRatio) > stat.comp_size)
    return fail("unpacks from " + std::to_string(stat.comp_size) + " to " +
                std::to_string(entry.bytes) +
                " bytes, as no file of torch does");
  zip_file_t *file = zip_fopen_index(zip->handle, entry.index, 0);
  if (!file)
    return fail(std::string("cannot be opened: ") + zip_strerror(zip->handle));
  std::string bytes(size_t(entry.bytes), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    zip_int64_t got = zip_fread(file, bytes.data() + done, bytes.size() - done);
    if (got <= 0)
      break;
    done += size_t(got);
  }
  // One more byte: reaching the end verifies the checksum.
  char more = 0;
  const bool ended = done == bytes.size() && zip_fread(file, &more, 1) == 0;
  std::string why = zip_file_strerror(file);
  zip_fclose(file);
  if (!ended)
    return fail(done < bytes.size() ? "is cut or damaged: " + why
                                    : "is damaged: " + why);
  return bytes;
}

bool Archive::stream(const std::string &name, int64_t begin, int64_t bytes,
                     const std::function<bool(std::string_view)> &sink,
                     std::string &error) {
  const auto found = table.find(name);
  auto fail = [&](const std::string &message) {
    error = "'" + printable(name) + "' " + message;
    return false;
  };
  if (found == table.end() || !zip->handle)
    return fail("is missing");
  const Entry &entry = found->second;
  // A compressed entry could unpack without end.
  if (!entry.stored)
    return fail("is compressed, as no file of torch is");
  if (begin < 0 || bytes < 0 || begin > entry.bytes ||
      bytes > entry.bytes - begin)
    return fail("has " + std::to_string(entry.bytes) +
                " bytes, and more are asked of it");
  zip_file_t *file = zip_fopen_index(zip->handle, entry.index, 0);
  if (!file)
    return fail(std::string("cannot be opened: ") + zip_strerror(zip->handle));
  std::string buffer(size_t(std::min<int64_t>(entry.bytes, 4 << 20)) + 1, 0);
  int64_t at = 0;
  bool good = true, wanted = true;
  while (good && wanted && at < begin + bytes) {
    const int64_t most =
        at < begin
            ? std::min<int64_t>(begin - at, int64_t(buffer.size()))
            : std::min<int64_t>(begin + bytes - at, int64_t(buffer.size()));
    const zip_int64_t got = zip_fread(file, buffer.data(), size_t(most));
    good = got > 0;
    if (good && at >= begin)
      wanted = sink(std::string_view(buffer.data(), size_t(got)));
    at += good ? got : 0;
  }
  if (good && wanted && at == entry.bytes)
    good = zip_fread(file, buffer.data(), 1) == 0; // verifies the checksum
  const std::string why = zip_file_strerror(file);
  zip_fclose(file);
  return good || fail("is cut or damaged: " + why);
}

} // namespace accel::torchexport

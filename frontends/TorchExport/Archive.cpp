//===- Archive.cpp - The zip that torch.export.save writes ----------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/TorchExport/Archive.h"

#include "frontends/Diagnostics/Diagnostics.h"
#include "frontends/TorchExport/ZipBytes.h"

#include <algorithm>
#include <minizip/unzip.h>
#include <vector>
#include <zlib.h>

namespace accel::torchexport {

namespace {
/// torch writes a few entries per parameter, uncompressed. A zip of more
/// entries, or with a large one that shrinks more than this, is no such file:
/// JSON packs 10 to 50 times smaller.
constexpr ZPOS64_T maxEntries = 4'000'000;
constexpr int64_t maxRatio = 200;
constexpr int64_t largeBytes = int64_t(1) << 20;
/// A name in a zip has at most 65535 bytes.
constexpr size_t nameBytes = size_t(1) << 16;
/// A flag of an entry: it is encrypted.
constexpr uLong encrypted = 1;

/// What minizip's and zlib's codes mean.
std::string messageOf(int code) {
  switch (code) {
  case UNZ_ERRNO:
    return "Read error";
  case UNZ_CRCERROR:
    return "CRC error";
  case UNZ_BADZIPFILE:
    return "Zip archive inconsistent";
  case Z_MEM_ERROR:
    return "Malloc failure";
  case Z_DATA_ERROR:
  case Z_STREAM_ERROR:
  case Z_NEED_DICT:
    return "Compressed data invalid";
  case UNZ_OK:
    return "Unexpected end of file";
  default:
    return "Error " + std::to_string(code) + " of minizip";
  }
}

/// An unsigned number of `width` bytes.
uint64_t little(const char *bytes, int width) {
  uint64_t value = 0;
  for (int i = width; i-- > 0;)
    value = value << 8 | uint8_t(bytes[i]);
  return value;
}

/// An entry that is being read.
class Reader {
public:
  /// Opens the entry; `why` says why not, empty where it is open.
  Reader(unzFile zip, const unz64_file_pos &where) : zip(zip) {
    int code = unzGoToFilePos64(zip, &where);
    if (code == UNZ_OK)
      code = unzGetCurrentFileInfo64(zip, &info, nullptr, 0, nullptr, 0,
                                     nullptr, 0);
    if (code != UNZ_OK)
      why = messageOf(code);
    else if (info.flag & encrypted)
      why = "it is encrypted";
    else if (info.compression_method != 0 &&
             info.compression_method != Z_DEFLATED)
      why = "Compression method " + std::to_string(info.compression_method) +
            " not supported";
    else if (code = unzOpenCurrentFile(zip); code != UNZ_OK)
      why = messageOf(code);
  }
  ~Reader() { unzCloseCurrentFile(zip); }
  Reader(const Reader &) = delete;
  Reader &operator=(const Reader &) = delete;

  /// The number of bytes copied: 0 at the end; negative, with `why`, if they
  /// cannot be read.
  int64_t read(char *into, int64_t bytes) {
    const int got =
        unzReadCurrentFile(zip, into, unsigned(std::min(bytes, maxRead)));
    if (got < 0)
      why = messageOf(got);
    return got;
  }
  /// Where the entry's bytes begin, in the zip.
  uint64_t place() const { return unzGetCurrentFileZStreamPos64(zip); }
  /// Whether the bytes, all of which were read, are those of the checksum; if
  /// not, with `why`.
  bool verify() {
    const int code = unzCloseCurrentFile(zip);
    if (code != UNZ_OK)
      why = messageOf(code);
    return code == UNZ_OK;
  }

  unz_file_info64 info = {};
  std::string why;

private:
  static constexpr int64_t maxRead = int64_t(1) << 30;
  unzFile zip;
};
} // namespace

struct Archive::Zip {
  std::unique_ptr<ZipBytes> bytes;
  unzFile handle = nullptr;
  std::vector<unz64_file_pos> places; // by Entry::index
  /// Local headers of entries with 64-bit fields, by Entry::index: minizip 1.1
  /// compares with (unsigned long)-1 and never reads those.
  std::map<uint64_t, uint64_t> wide;

  /// Where the bytes of such an entry begin; nothing where there is no header.
  std::optional<uint64_t> bytesOf(uint64_t header) {
    char head[30];
    if (bytes->readFrom(header, head, sizeof head) != sizeof head ||
        std::string_view(head, 4) != "PK\3\4")
      return std::nullopt;
    return header + sizeof head + little(head + 26, 2) + little(head + 28, 2);
  }
  ~Zip() {
    if (handle)
      unzClose(handle);
  }
};

Archive::Archive() : zip(std::make_unique<Zip>()) {}
Archive::Archive(Archive &&) = default;
Archive &Archive::operator=(Archive &&) = default;
Archive::~Archive() = default;

std::optional<Archive> Archive::openBytes(std::unique_ptr<ZipBytes> bytes,
                                          std::string &error) {
  const std::string prefix = "no zip archive that can be read: ";
  if (!bytes) {
    error = prefix + error;
    return std::nullopt;
  }
  Archive archive;
  archive.zip->bytes = std::move(bytes);
  zlib_filefunc64_def functions = archive.zip->bytes->functions();
  archive.zip->handle = unzOpen2_64(nullptr, &functions);
  if (!archive.zip->handle) {
    error = prefix + "Not a zip archive";
    return std::nullopt;
  }
  if (!archive.list(error))
    return std::nullopt;
  return archive;
}

std::optional<Archive> Archive::open(const std::string &path,
                                     std::string &error) {
  return openRange(path, 0, -1, error);
}

std::optional<Archive> Archive::openRange(const std::string &path,
                                          int64_t begin, int64_t bytes,
                                          std::string &error) {
  return openBytes(ZipBytes::ofFile(path, begin, bytes, error), error);
}

std::optional<Archive> Archive::openMemory(std::string_view bytes,
                                           std::string &error) {
  if (bytes.empty())
    return Archive();
  return openBytes(ZipBytes::ofMemory(bytes), error);
}

Archive Archive::ofEntries(std::map<std::string, std::string> entries) {
  Archive archive;
  for (const auto &[name, text] : entries)
    archive.table[name] = {0, int64_t(text.size()), true, 0};
  archive.given = std::move(entries);
  return archive;
}

bool Archive::list(std::string &error) {
  unz_global_info64 all = {};
  unzGetGlobalInfo64(zip->handle, &all);
  if (all.number_entry > maxEntries) {
    error = "the zip has " + std::to_string(all.number_entry) +
            " entries, more than " + std::to_string(maxEntries);
    return false;
  }
  std::vector<char> text(nameBytes + 1);
  for (ZPOS64_T i = 0; i < all.number_entry; ++i) {
    unz_file_info64 info = {};
    unz64_file_pos place = {};
    if ((i == 0 ? unzGoToFirstFile(zip->handle)
                : unzGoToNextFile(zip->handle)) != UNZ_OK ||
        unzGetCurrentFileInfo64(zip->handle, &info, text.data(), nameBytes,
                                nullptr, 0, nullptr, 0) != UNZ_OK ||
        unzGetFilePos64(zip->handle, &place) != UNZ_OK) {
      error = "entry " + std::to_string(i) + " of the zip is damaged";
      return false;
    }
    zip->places.push_back(place);
    std::string name = text.data();
    const size_t slash = name.find('/');
    if (slash == std::string::npos || slash == 0 || slash + 1 == name.size())
      continue;
    if (folder.empty())
      folder = name.substr(0, slash);
    if (name.compare(0, slash, folder) != 0)
      continue;
    Entry entry;
    entry.index = uint64_t(i);
    if (info.uncompressed_size > uint64_t(INT64_MAX)) {
      error = "entry '" + printable(name) + "' of the zip is damaged";
      return false;
    }
    entry.bytes = int64_t(info.uncompressed_size);
    entry.stored = info.compression_method == 0;
    entry.checksum = uint32_t(info.crc);
    if (zip->bytes->length() > UINT32_MAX &&
        !widen(place.pos_in_zip_directory, entry)) {
      error = "entry '" + printable(name) + "' of the zip is damaged";
      return false;
    }
    if (!table.emplace(name.substr(slash + 1), entry).second) {
      error = "the zip has two entries '" + printable(name) + "'";
      return false;
    }
  }
  return true;
}

/// Reads the 64-bit fields of an entry whose record of the directory stands
/// there, if it has any.
bool Archive::widen(uint64_t record, Entry &entry) {
  char head[46];
  if (zip->bytes->readFrom(record, head, sizeof head) != sizeof head ||
      std::string_view(head, 4) != "PK\1\2")
    return false;
  uint64_t packed = little(head + 20, 4), bytes = little(head + 24, 4),
           header = little(head + 42, 4);
  if (packed != UINT32_MAX && bytes != UINT32_MAX && header != UINT32_MAX)
    return true;
  std::string extra(little(head + 30, 2), '\0');
  const uint64_t at = record + sizeof head + little(head + 28, 2);
  if (zip->bytes->readFrom(at, extra.data(), extra.size()) != extra.size())
    return false;
  for (std::string_view rest = extra; rest.size() >= 4;) {
    const uint64_t id = little(rest.data(), 2),
                   size = little(rest.data() + 2, 2);
    rest.remove_prefix(4);
    if (size > rest.size())
      return false;
    std::string_view field = rest.substr(0, size);
    rest.remove_prefix(size);
    if (id != 1)
      continue;
    for (uint64_t *value : {&bytes, &packed, &header}) {
      if (*value != UINT32_MAX)
        continue;
      if (field.size() < 8)
        return false;
      *value = little(field.data(), 8);
      field.remove_prefix(8);
    }
  }
  if (bytes > uint64_t(INT64_MAX) || header > zip->bytes->length())
    return false;
  entry.bytes = int64_t(bytes);
  entry.stored = little(head + 10, 2) == 0 && packed == bytes &&
                 !(little(head + 8, 2) & encrypted);
  zip->wide[entry.index] = header;
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
  if (zip->wide.count(entry.index)) {
    std::string bytes;
    if (!stream(
            name, 0, entry.bytes,
            [&](std::string_view some) { return bytes += some, true; }, error))
      return std::nullopt;
    return bytes;
  }
  Reader reader(zip->handle, zip->places[entry.index]);
  if (!reader.why.empty())
    return fail("cannot be opened: " + reader.why);
  const ZPOS64_T packed = reader.info.compressed_size;
  if (entry.bytes > largeBytes && uint64_t(entry.bytes / maxRatio) > packed)
    return fail("unpacks from " + std::to_string(packed) + " to " +
                std::to_string(entry.bytes) +
                " bytes, as no file of torch does");
  std::string bytes(size_t(entry.bytes), '\0');
  int64_t done = 0;
  while (done < entry.bytes) {
    const int64_t got = reader.read(bytes.data() + done, entry.bytes - done);
    if (got <= 0)
      return fail("is cut or damaged: " +
                  (reader.why.empty() ? messageOf(UNZ_OK) : reader.why));
    done += got;
  }
  if (!reader.verify())
    return fail("is damaged: " + reader.why);
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
  const bool whole = begin == 0 && bytes == entry.bytes;
  std::string buffer(size_t(std::min<int64_t>(bytes, 4 << 20)) + 1, 0);
  bool good = true, wanted = true;
  std::string why;
  auto copy = [&](auto &&next) {
    for (int64_t done = 0; good && wanted && done < bytes;) {
      const int64_t most = std::min<int64_t>(bytes - done, buffer.size());
      const int64_t got = next(done, most);
      good = got > 0;
      if (good)
        wanted = sink(std::string_view(buffer.data(), size_t(got)));
      done += got;
    }
  };
  const auto wide = zip->wide.find(entry.index);
  if (wide == zip->wide.end() && whole) {
    // minizip checks what it reads, from the beginning only.
    Reader reader(zip->handle, zip->places[entry.index]);
    if (!reader.why.empty())
      return fail("cannot be opened: " + reader.why);
    copy([&](int64_t, int64_t most) {
      return reader.read(buffer.data(), most);
    });
    if (good && wanted)
      good = reader.verify();
    why = reader.why;
  } else {
    std::optional<uint64_t> place;
    if (wide != zip->wide.end()) {
      place = zip->bytesOf(wide->second);
    } else if (Reader reader(zip->handle, zip->places[entry.index]);
               reader.why.empty()) {
      place = reader.place();
    }
    if (!place)
      return fail("cannot be opened: it has no header");
    uLong checksum = 0;
    copy([&](int64_t done, int64_t most) {
      const auto got = zip->bytes->readFrom(*place + uint64_t(begin + done),
                                            buffer.data(), uint64_t(most));
      checksum = crc32_z(checksum,
                         reinterpret_cast<const Bytef *>(buffer.data()), got);
      return int64_t(got);
    });
    if (good && wanted && whole && checksum != entry.checksum) {
      good = false;
      why = messageOf(UNZ_CRCERROR);
    }
  }
  return good ||
         fail("is cut or damaged: " + (why.empty() ? messageOf(UNZ_OK) : why));
}

} // namespace accel::torchexport

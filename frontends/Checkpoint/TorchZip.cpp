//===- TorchZip.cpp - Files as torch.save writes them ---------------------===//
//
// Part of accel-opt, under the Apache License v2.0.
//
//===----------------------------------------------------------------------===//
#include "frontends/Checkpoint/TorchZip.h"
#include "frontends/Checkpoint/TorchNames.h"

#include <algorithm>
#include <minizip/zip.h>

namespace accel::checkpoint {

namespace {

/// What minizip writes to: a file from a place on.
struct Place {
  File &file;
  int64_t begin, at = 0, end = 0;
  bool failed = false;

  uLong write(const void *bytes, uLong count) {
    if (!file.write({static_cast<const char *>(bytes), count}, begin + at)) {
      failed = true;
      return 0;
    }
    at += int64_t(count);
    end = std::max(end, at);
    return count;
  }
  long seek(ZPOS64_T offset, int origin) {
    at = int64_t(offset) + (origin == ZLIB_FILEFUNC_SEEK_SET   ? 0
                            : origin == ZLIB_FILEFUNC_SEEK_CUR ? at
                                                               : end);
    return at < 0 || at > end ? -1 : 0;
  }
};

zlib_filefunc64_def functionsOf(Place &place) {
  zlib_filefunc64_def made = {};
  made.opaque = &place;
  made.zopen64_file = [](voidpf opaque, const void *, int) { return opaque; };
  made.zread_file = [](voidpf, voidpf, void *, uLong) { return uLong(0); };
  made.zwrite_file = [](voidpf, voidpf stream, const void *bytes, uLong count) {
    return static_cast<Place *>(stream)->write(bytes, count);
  };
  made.ztell64_file = [](voidpf, voidpf stream) {
    return ZPOS64_T(static_cast<Place *>(stream)->at);
  };
  made.zseek64_file = [](voidpf, voidpf stream, ZPOS64_T offset, int origin) {
    return static_cast<Place *>(stream)->seek(offset, origin);
  };
  made.zclose_file = [](voidpf, voidpf) { return 0; };
  made.zerror_file = [](voidpf, voidpf stream) {
    return int(static_cast<Place *>(stream)->failed);
  };
  return made;
}

/// An entry that is stored as it is; `fill` gives its bytes.
bool addEntry(zipFile zip, const char *name, int64_t bytes,
              const std::function<bool(const TakeBytes &)> &fill) {
  zip_fileinfo info = {};
  const bool large = bytes >= int64_t(UINT32_MAX);
  if (zipOpenNewFileInZip64(zip, name, &info, nullptr, 0, nullptr, 0, nullptr,
                            0, 0, large) != ZIP_OK)
    return false;
  const bool good = fill([&](std::string_view some) {
    return zipWriteInFileInZip(zip, some.data(), unsigned(some.size())) ==
           ZIP_OK;
  });
  return zipCloseFileInZip(zip) == ZIP_OK && good;
}

bool addText(zipFile zip, const char *name, const std::string &text) {
  return addEntry(zip, name, int64_t(text.size()),
                  [&](const TakeBytes &take) { return take(text); });
}

} // namespace

std::optional<int64_t>
writeTorchZip(File &file, int64_t at, const std::string &pickle,
              const std::vector<TorchStorage> &storages) {
  Place place{file, at};
  zlib_filefunc64_def functions = functionsOf(place);
  zipFile zip = zipOpen2_64(nullptr, APPEND_STATUS_CREATE, nullptr, &functions);
  if (!zip)
    return std::nullopt;
  bool good = addText(zip, "archive/data.pkl", pickle) &&
              addText(zip, "archive/byteorder", "little");
  for (size_t i = 0; good && i < storages.size(); ++i)
    good = addEntry(zip, ("archive/data/" + std::to_string(i)).c_str(),
                    storages[i].bytes, storages[i].fill);
  good = good && addText(zip, "archive/version", "3\n");
  good &= zipClose(zip, nullptr) == ZIP_OK && !place.failed;
  if (!good)
    return std::nullopt;
  return place.end;
}

std::optional<int64_t>
writeTorchZip(File &file, int64_t at, const std::string &pickle, int64_t bytes,
              const std::function<bool(const TakeBytes &)> &fill) {
  std::vector<TorchStorage> storages;
  if (bytes >= 0)
    storages.push_back({bytes, fill});
  return writeTorchZip(file, at, pickle, storages);
}

void writeTensor(PickleWriter &out, const std::string &dtype,
                 const std::vector<int64_t> &shape, size_t storage) {
  std::vector<int64_t> strides(shape.size(), 1);
  int64_t elements = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = std::max<int64_t>(1, elements);
    elements *= shape[i];
  }
  out.global("torch._utils", "_rebuild_tensor_v2");
  out.mark();
  out.mark();
  out.text("storage");
  out.global("torch", storageOfDtype(dtype));
  out.text(std::to_string(storage));
  out.text("cpu");
  out.integer(elements);
  out.tuple();
  out.persistent();
  out.integer(0);
  out.integers(shape);
  out.integers(strides);
  out.boolean(false);
  out.global("collections", "OrderedDict");
  out.mark();
  out.tuple();
  out.call();
  out.tuple();
  out.call();
}

std::string pickleOfTensor(const std::string &dtype,
                           const std::vector<int64_t> &shape) {
  PickleWriter out;
  writeTensor(out, dtype, shape, 0);
  return out.finish();
}

} // namespace accel::checkpoint

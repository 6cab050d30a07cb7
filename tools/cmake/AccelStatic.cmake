# ACCEL_STATIC: accel-opt with no shared library at all, the C library included,
# so that the file that tests run is the one that runs on any Linux. On where
# everything has an archive, as on Debian.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LINK_OPTIONS -static-pie)
check_cxx_source_compiles("
  #include <cmath>
  #include <iostream>
  int main() { std::cout << std::log(2.0); }" ACCEL_HAS_STATIC_LIBC)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
set(_missing "")
if(NOT ACCEL_HAS_STATIC_LIBC)
  list(APPEND _missing "libc.a")
endif()
foreach(_name yaml pcre2-8 minizip z zstd jemalloc_pic)
  find_library(ACCEL_ARCHIVE_${_name} lib${_name}.a)
  mark_as_advanced(ACCEL_ARCHIVE_${_name})
  if(NOT ACCEL_ARCHIVE_${_name})
    list(APPEND _missing "lib${_name}.a")
  endif()
endforeach()
list(JOIN _missing ", " _missing)
if(ACCEL_FUZZ OR ACCEL_LINK_MLIR_DYLIB OR _missing)
  set(_static OFF)
else()
  set(_static ON)
endif()
option(ACCEL_STATIC "Link accel-opt without shared libraries, the C library included" ${_static})
if(ACCEL_STATIC AND NOT _static)
  message(FATAL_ERROR "ACCEL_STATIC needs everything as an archive; "
    "missing here: ${_missing}. Install them (tools/setup), and leave "
    "ACCEL_FUZZ and ACCEL_LINK_MLIR_DYLIB off.")
elseif(_missing)
  message(STATUS "accel-opt: linked dynamically, because there is no ${_missing}")
endif()

# What LLVM's exported archives name as shared libraries, by archive. Z3 is for
# LLVM's solver of bit vectors, which nothing here calls.
if(NOT ACCEL_LINK_MLIR_DYLIB)
  get_target_property(_old LLVMSupport INTERFACE_LINK_LIBRARIES)
  list(FILTER _old EXCLUDE REGEX "libz3")
  if(ACCEL_ARCHIVE_z)
    list(TRANSFORM _old REPLACE "^ZLIB::ZLIB$" "${ACCEL_ARCHIVE_z}")
  endif()
  if(ACCEL_ARCHIVE_zstd)
    list(TRANSFORM _old REPLACE "^zstd::libzstd_shared$" "${ACCEL_ARCHIVE_zstd}")
  endif()
  set_target_properties(LLVMSupport PROPERTIES INTERFACE_LINK_LIBRARIES "${_old}")
endif()

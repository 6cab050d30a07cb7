# Writes the codes that docs/diagnostics.md describes as C++ strings:
#   cmake -DPAGE=docs/diagnostics.md -DOUT=Codes.inc -P DiagnosticCodes.cmake
file(STRINGS ${PAGE} headings REGEX "^### `[a-z0-9-]+`$")
set(text "")
foreach(heading IN LISTS headings)
  string(REGEX REPLACE "^### `(.*)`$" "\"\\1\",\n" line "${heading}")
  string(APPEND text "${line}")
endforeach()
file(CONFIGURE OUTPUT ${OUT} CONTENT "${text}" @ONLY)

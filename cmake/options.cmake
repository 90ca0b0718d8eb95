# Compiler options of every target of this project, as one interface library.
add_library(remote_options INTERFACE)
target_compile_options(remote_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of "text" + std::string in optimised builds although nothing is wrong (its bug 105651).
  target_compile_options(remote_options INTERFACE -Wno-restrict)
endif()
if(CMAKE_UNITY_BUILD)
  # A name in one file's anonymous namespace may be a local name in the next file of its batch.
  target_compile_options(remote_options INTERFACE -Wno-shadow)
endif()
if(REMOTE_WERROR)
  target_compile_options(remote_options INTERFACE -Werror)
endif()
if(REMOTE_SANITIZE)
  target_compile_options(remote_options INTERFACE -fsanitize=${REMOTE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(remote_options INTERFACE -fsanitize=${REMOTE_SANITIZE})
  if(REMOTE_SANITIZE MATCHES "address" AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    # What the sanitizers note of each check holds addresses. At a fixed place these are right as linked; else a start of the
    # program rewrites 60 MB of them, which is a third of the time that a short command takes.
    target_link_options(remote_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()
if(REMOTE_RELEASE)
  # Hardening as Debian has it, and paths that do not tell where it was built. All targets take it, also those without
  # remote_options.
  add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection
                      -Wformat -Werror=format-security
                      -ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -Wl,-z,relro,-z,now REMOTE_HAS_RELRO)
  add_link_options(-pie $<$<BOOL:${REMOTE_HAS_RELRO}>:-Wl,-z,relro,-z,now>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    add_compile_options(-fcf-protection)
  endif()
endif()

# Compiler options of all targets of this project, as an interface library.
add_library(remote_options INTERFACE)
target_compile_options(remote_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns about "text" + std::string in optimized builds although nothing is wrong (GCC bug 105651).
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
    # The sanitizers' data about each check contains addresses. In a program at a fixed address, these are correct as
    # linked. Otherwise each start of the program relocates 60 MB of them, which is a third of the time of a short
    # command.
    target_link_options(remote_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
  endif()
endif()
if(REMOTE_RELEASE)
  # Hardening as in Debian, and paths that do not reveal where the program was built. This applies to all targets,
  # including those without remote_options.
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

# Compiler options of every target of this project, as one interface library.
add_library(remote_options INTERFACE)
target_compile_options(remote_options INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                       -Woverloaded-virtual -Wold-style-cast)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 warns of "text" + std::string in optimised builds although nothing is wrong (its bug 105651).
  target_compile_options(remote_options INTERFACE -Wno-restrict)
endif()
if(REMOTE_WERROR)
  target_compile_options(remote_options INTERFACE -Werror)
endif()
if(REMOTE_SANITIZE)
  target_compile_options(remote_options INTERFACE -fsanitize=${REMOTE_SANITIZE}
                         -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(remote_options INTERFACE -fsanitize=${REMOTE_SANITIZE})
endif()

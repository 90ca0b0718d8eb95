# libcmark-gfm, a parser for Markdown. Debian's packages of it have no CMake files. Defines the target
# CmarkGfm::CmarkGfm.
find_path(CmarkGfm_INCLUDE_DIR cmark-gfm-core-extensions.h)
find_library(CmarkGfm_LIBRARY cmark-gfm)
find_library(CmarkGfm_EXTENSIONS_LIBRARY cmark-gfm-extensions)
mark_as_advanced(CmarkGfm_INCLUDE_DIR CmarkGfm_LIBRARY CmarkGfm_EXTENSIONS_LIBRARY)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(CmarkGfm REQUIRED_VARS CmarkGfm_LIBRARY CmarkGfm_EXTENSIONS_LIBRARY CmarkGfm_INCLUDE_DIR)
if(CmarkGfm_FOUND AND NOT TARGET CmarkGfm::CmarkGfm)
  add_library(CmarkGfm::CmarkGfm UNKNOWN IMPORTED)
  set_target_properties(CmarkGfm::CmarkGfm PROPERTIES IMPORTED_LOCATION ${CmarkGfm_EXTENSIONS_LIBRARY}
                        INTERFACE_LINK_LIBRARIES ${CmarkGfm_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${CmarkGfm_INCLUDE_DIR})
endif()

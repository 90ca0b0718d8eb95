# Files installed with the program and the library, and the Debian package (cpack -G DEB; called by scripts/release).

# The manual, written by the program itself from --help and docs/.
set(REMOTE_MAN_DIR ${CMAKE_BINARY_DIR}/man)
add_custom_command(OUTPUT ${REMOTE_MAN_DIR}/man1/remote.1
                   COMMAND ${CMAKE_COMMAND} -E rm -rf ${REMOTE_MAN_DIR}
                   COMMAND remote __manual ${REMOTE_MAN_DIR}
                   DEPENDS remote VERBATIM)
add_custom_target(manual ALL DEPENDS ${REMOTE_MAN_DIR}/man1/remote.1)
install(DIRECTORY ${REMOTE_MAN_DIR}/ DESTINATION ${CMAKE_INSTALL_MANDIR})

install(FILES src/cli/completion/remote.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME remote)
install(FILES src/cli/completion/remote.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _remote)
install(FILES src/cli/completion/remote.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR}/docs FILES_MATCHING PATTERN *.md PATTERN *.svg)

install(FILES sample/tiny/train.py DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples)

# The Python packages, where Debian's python3 finds them. Elsewhere, install them with pip (python/pyproject.toml).
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  install(DIRECTORY python/remote_launcher python/labml_remote DESTINATION lib/python3/dist-packages
          PATTERN __pycache__ EXCLUDE PATTERN *.pyc EXCLUDE)
  install(PROGRAMS packaging/labml_remote DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(FILES packaging/labml_remote.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
endif()

set(REMOTE_MAINTAINER "the remote authors <remote@packages.invalid>" CACHE STRING "Who made the package: NAME <ADDRESS>")
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME remote)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT ${REMOTE_MAINTAINER})
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "launcher that turns plain SSH servers into one training machine")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "remote takes a project folder and a short YAML list of servers, makes a Python
environment on each of them, sends the project, starts distributed PyTorch on
all of them at once, and lists, follows and ends the jobs. The servers need
SSH, rsync and Python, and no daemon stays there.

The package also has the C++ library beneath the program, and the Python
packages remote_launcher and labml_remote.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "rsync, python3:any")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "openssh-client, iproute2, procps, python3-yaml")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS
    "openssh-server, python3-torch, python3-venv, libssh-dev, libssl-dev, liblzma-dev, libunistring-dev, libyaml-cpp-dev, libfmt-dev, cmake, g++")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst ${PROJECT_SOURCE_DIR}/packaging/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_stage.cmake)
set(CPACK_THREADS 1)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ
                                                WORLD_EXECUTE)
set(CPACK_REMOTE_COPYRIGHT ${PROJECT_SOURCE_DIR}/packaging/copyright)
include(CPack)

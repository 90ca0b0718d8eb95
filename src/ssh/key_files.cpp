#include "ssh/key_files.hpp"

#include <cstring>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <remote/error.hpp>

#include "base/files.hpp"
#include "base/paths.hpp"
#include "ssh/libssh.hpp"

namespace remote::ssh {
namespace fs = std::filesystem;
namespace {

// Provides no passphrase. Without this callback, libssh would ask on the terminal.
int no_passphrase(const char*, char*, std::size_t, int, int, void*) {
  return -1;
}

std::string line_of(ssh_key key, const std::string& comment) {
  return fmt::format("{} {}{}{}\n", key_type_name(key), key_base64(key), comment.empty() ? "" : " ", comment);
}

}  // namespace

void generate_key(const fs::path& file, const std::string& comment) {
  initialise_libssh();
  const std::string what = "cannot make the key " + file.string();
  const fs::path public_file = file.string() + ".pub";
  std::error_code ignored;
  for (const fs::path& path : {file, public_file}) {
    if (fs::exists(fs::symlink_status(path, ignored))) {
      throw Error(what, path.string() + " exists and is not replaced",
                  "name another file, or use the key that is there");
    }
  }
  make_folders(file.parent_path(), 0700);
  const KeyPtr key = make_key(ssh_pki_generate, SSH_KEYTYPE_ED25519, 0);
  if (!key) {
    throw Error(what, "libssh could not generate it").mended_by(Remedy::report_bug);
  }
  char* text = nullptr;
  if (ssh_pki_export_privkey_base64(key.get(), nullptr, nullptr, nullptr, &text) != SSH_OK) {
    throw Error(what, "libssh could not write it",
                "can you write to that folder, and does the disk have space?");
  }
  const auto forget = [](char* secret) {
    OPENSSL_cleanse(secret, std::strlen(secret));
    ssh_string_free_char(secret);
  };
  const std::unique_ptr<char, decltype(forget)> content(text, forget);
  write_file_atomic(file, content.get(), 0600);
  write_file_atomic(public_file, line_of(key.get(), comment), 0644);
}

std::string public_half_of(const fs::path& file) {
  initialise_libssh();
  if (auto text = read_file_if_there(file.string() + ".pub")) {
    return *text;
  }
  const std::string what = "cannot use the key " + file.string();
  if (!is_there(file)) {
    throw Error::usage(what, "no such file").mended_by(Remedy::make_key);
  }
  const std::string text = read_file(file);
  const KeyPtr key = make_key(ssh_pki_import_privkey_base64, text.c_str(), nullptr, no_passphrase, nullptr);
  if (!key) {
    throw Error::usage(what,
                       "it cannot be read without a passphrase and there is no " + file.string() + ".pub",
                       fmt::format("make it: ssh-keygen -y -f {0} >{0}.pub", file.string()));
  }
  return line_of(key.get(), "");
}

}  // namespace remote::ssh

#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

// Digests and base64, by libcrypto.

namespace remote {

// SHA-256 of what is added, for digests that are kept and compared.
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::string_view data);
  // Adds the text's length and the text: "ab","c" and "a","bc" then differ.
  Sha256& add_field(std::string_view field);
  // 64 lower-case hexadecimal digits. Call once.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string sha256_hex(std::string_view data);

// 20 bytes. Only for hashed known_hosts entries: SHA-1 protects nothing any more.
std::string hmac_sha1(std::string_view key, std::string_view data);

std::string base64_encode(std::string_view data);
// nullopt when there is another character than those of base64; the padding may be missing.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace remote

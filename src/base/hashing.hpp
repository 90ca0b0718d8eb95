#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

// Digests and base64, by libcrypto; random numbers, by the system.

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

// 40 digits. Only for names: SHA-1 protects nothing any more.
std::string sha1_hex(std::string_view data);
// 20 bytes. Only for hashed known_hosts entries.
std::string hmac_sha1(std::string_view key, std::string_view data);

std::string base64_encode(std::string_view data);
// nullopt when there is another character than those of base64; the padding may be missing.
std::optional<std::string> base64_decode(std::string_view text);

// `digits` lower-case hexadecimal digits from the system's random source; fit for ids and tokens.
std::string random_hex(std::size_t digits);
// A number in [low, high].
std::uint32_t random_between(std::uint32_t low, std::uint32_t high);

}  // namespace remote

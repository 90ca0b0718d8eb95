#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

// Digests and base64 from libcrypto, and random numbers from the system.

namespace remote {

// Computes the SHA-256 of all added data, for digests that are stored and compared.
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::string_view data);
  // Adds the text's length and the text, so that "ab","c" and "a","bc" differ.
  Sha256& add_field(std::string_view field);
  // 64 lower-case hexadecimal digits. Call it only once.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

std::string sha256_hex(std::string_view data);

// 40 digits. Use it only for names, because SHA-1 is no longer secure.
std::string sha1_hex(std::string_view data);
// 20 bytes. Use it only for hashed known_hosts entries.
std::string hmac_sha1(std::string_view key, std::string_view data);

std::string base64_encode(std::string_view data);
// nullopt if the text contains characters that are not base64. The padding may be missing.
std::optional<std::string> base64_decode(std::string_view text);

// `digits` lower-case hexadecimal digits from the system's random source, suitable for ids and tokens.
std::string random_hex(std::size_t digits);
// Both bounds are inclusive.
std::uint32_t random_between(std::uint32_t low, std::uint32_t high);

}  // namespace remote

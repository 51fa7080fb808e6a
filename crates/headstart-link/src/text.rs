//! Serde for what has a text form.

/// Read by `FromStr`, written by `Display`; for `#[serde(try_from = "String", into = "String")]`.
macro_rules! serde_as_text {
    ($spec:ty, $error:ty) => {
        impl TryFrom<String> for $spec {
            type Error = $error;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$spec> for String {
            fn from(spec: $spec) -> String {
                spec.to_string()
            }
        }
    };
}
pub(crate) use serde_as_text;

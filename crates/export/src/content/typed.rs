//! Contents whose bytes have a meaning, as types of their own.

/// Makes a struct around an `Arc<dyn Content>` from any content, and gives it the methods of contents.
macro_rules! typed_content {
    ($name:ident) => {
        impl<C: Content + 'static> From<Arc<C>> for $name {
            fn from(content: Arc<C>) -> Self {
                $name(content)
            }
        }

        impl From<Arc<dyn Content>> for $name {
            fn from(content: Arc<dyn Content>) -> Self {
                $name(content)
            }
        }

        impl std::ops::Deref for $name {
            type Target = dyn Content;

            fn deref(&self) -> &Self::Target {
                &*self.0
            }
        }

        impl $name {
            /// Returns the bytes as a content.
            pub fn content(&self) -> Arc<dyn Content> {
                self.0.clone()
            }
        }
    };
}
